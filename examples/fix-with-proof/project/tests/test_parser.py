from parser import parse


def test_a_plain_line():
    assert parse("name = value") == ("name", "value")


def test_a_value_with_an_equals_sign():
    assert parse("url = http://x/?a=b") == ("url", "http://x/?a=b")
