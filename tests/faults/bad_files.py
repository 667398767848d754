"""What a file may hold where a text, a checkpoint, an ARPA file, a result or a sweep is expected."""

TEXTS = (
    b"",
    b"\n",
    b"a b c\n",
    b"a b\xff\n" * 50,
    "a b".encode("utf-16"),
    b"\x00" * 10_000,
    b"\xef\xbb\xbf",
    b"\xfe\xff",
)
CHECKPOINTS = (
    b"",
    b"x",
    b"PK\x03\x04",
    b"{}",
    b"\x80\x02}q\x00.",
    bytes(5000),
    b"\x1f\x8b\x08",
    b"PK\x05\x06" + bytes(18),
)
GOOD_ARPA = b"\\data\\\nngram 1=3\n\n\\1-grams:\n-0.4771213 a\n-0.4771213 b\n-0.4771213 </s>\n\n\\end\\\n"
ARPAS = (
    b"", b"x\n", b"\\data\\\n", b"\\data\\\n\\end\\\n", GOOD_ARPA[:-5], GOOD_ARPA.replace(b"=3", b"=4"),
    GOOD_ARPA.replace(b"=3", b"=-3"), GOOD_ARPA.replace(b"=3",
    b"=99999999999999999999"), GOOD_ARPA.replace(b"-0.", b"0."),
    GOOD_ARPA.replace(b"-0.4771213 b", b"nan b"), GOOD_ARPA.replace(b" b", b" a"), GOOD_ARPA.replace(b" b",
    b" \xff"),
    GOOD_ARPA.replace(b"</s>", b"c"), GOOD_ARPA.replace(b"-0.47", b"-inf"), GOOD_ARPA.replace(b" a",
    b" a 400"),
    GOOD_ARPA.replace(b"1-grams", b"2-grams"), GOOD_ARPA.replace(b"ngram 1", b"ngram 2"), bytes(3000),
    GOOD_ARPA.replace(b"-0.4771213 b", b"-0.4_77 b"), GOOD_ARPA.replace(b" b", b" b c d"),
)  # fmt: skip
RESULTS = (
    b"", b"{", b"[1]", b"{}", b"7", b"null", b'"x"', b'{"schema_version": 99}', b'{"schema_version": 2}',
    b"\xff\xfe",
    b'{"schema_version": 2, "status": 3}', b'{"schema_version": 2, "status": "completed", "test_ppl": "x"}',
    b"[" * 5000, b'{"schema_version": "2", "status": "completed"}', b'{"schema_version": null}', bytes(100),
)  # fmt: skip
SWEEPS = (
    b"", b"x", b"[1]", b"sweep: 3", b"sweep: {rows: 3}", b"sweep: {rows: []}",
    b"sweep: {name: a, rows: [{name: b}]}",
    b"sweep: {name: a, rows: [3]}", b"sweep: {name: a, rows: [{name: b, run: 3}]}",
    b"sweep: {name: a, rowss: []}",
    b"sweep: {name: a, rows: [{name: b, run: [model=none]}]}",
    b"sweep: {name: a, rows: [{name: b, run: [3]}]}",
    b"sweep: {name: a/b, rows: [{name: b, run: []}]}",
    b"sweep: {name: a, rows: [{name: b, run: [], stat: c}]}",
    b"sweep: {name: a, seeds: x, rows: [{name: b, run: []}]}",
    b"sweep: {name: a, rows: [{name: b, run: [], start: c}]}",
    b"sweep: {name: a, rows: [{name: b, run: []}, {name: b, run: []}]}",
    b"sweep: {name: a, rows: [{name: b, run: ['x=1']}]}",
    b"sweep: {name: a, rows: [{name: b, run: ['model=rnn,lstm']}]}", b"a: [", b"\xff\xfe", b"a: b: c",
    b"sweep: {rows: null}",
    b"sweep: {name: a, rows: [{name: b, run: null}]}",
    b"sweep: {name: a, seeds: [], rows: [{name: b, run: []}]}",
    b"model: 3", b"none: 3", b"defaults: 3", b"defaults: [x]", b"defaults: [override /model: none]",
    b"sweep: ${none}",
)  # fmt: skip
