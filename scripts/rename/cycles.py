"""Print import cycles between the new modules, by the tables: what to place elsewhere."""
import sys; import codemod,pathlib,collections
t=codemod.Tables(()); p=codemod.Project(pathlib.Path(__file__).parents[2],t)
e=collections.defaultdict(lambda: collections.defaultdict(set))
for f in p.files.values():
    if not f.path.startswith('src'): continue
    n=p.new_of[f.module]
    for b in f.bindings.values():
        if b.typing: continue
        x=p.resolve(b.target.module,b.target.name)
        if isinstance(x,codemod.External): continue
        m=p.new_module(x)
        if m!=n: e[n][m].add((f.module.removeprefix('truegreen.'),x.module.removeprefix('truegreen.'),getattr(x,'name','*')))
# SCCs
import functools
sys.setrecursionlimit(9999)
idx={};low={};st=[];on=set();out=[]
def sc(v):
    idx[v]=low[v]=len(idx); st.append(v); on.add(v)
    for w in e[v]:
        if w not in idx: sc(w); low[v]=min(low[v],low[w])
        elif w in on: low[v]=min(low[v],idx[w])
    if low[v]==idx[v]:
        c=[]
        while True:
            w=st.pop(); on.discard(w); c.append(w)
            if w==v: break
        if len(c)>1: out.append(c)
for v in list(e): 
    if v not in idx: sc(v)
for c in out:
    print('CYCLE',c)
    for a in c:
        for b in c:
            if b in e[a]: print('  ',a.removeprefix('truegreen.'),'->',b.removeprefix('truegreen.'),sorted(e[a][b]))
