"""How much is measured: the sizes, rounds and series of a benchmark."""

from typing import NamedTuple

from hornn.bench.work import Sizes


class Plan(NamedTuple):
    """What the sections measure, and for how long."""

    sizes: Sizes = Sizes()
    rounds: int = 15
    few_rounds: int = 5  # in series over a size
    seconds: float = 0.25  # least length of a sample: /proc/stat counts in hundredths
    orders: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    hidden_sizes: tuple[int, ...] = (100, 200, 400, 1000, 2000)
    vocab_sizes: tuple[int, ...] = (10_000, 20_000, 44_000)
    seq_lens: tuple[int, ...] = (10, 30, 100)
    batch_sizes: tuple[int, ...] = (1, 20, 64, 128)
    scored_tokens: int = 6_000
    scored_chunks: tuple[tuple[int, int], ...] = ((1, 300), (20, 30))  # columns, chunk length
    # Processes that measure the peak of memory, which differs by 33 % between processes of the same work.
    processes: int = 3
    large_vocab: int = 44_000  # of the output layer whose memory is measured; text8's
    head_vocab: int = 8_088  # of text8's head
    head_widths: tuple[int, ...] = (100, 400)
    characters: Sizes = Sizes(50, 600, 20, 100)
    music: Sizes = Sizes(88, 400, 10, 200)
    speech: Sizes = Sizes(200, 500, 8, 300)  # states as classes, at the acoustic HORNNs' width
    frames: Sizes = Sizes(200, 500, 32, 20)  # states as classes, at the acoustic HORNNs' width
    sentences: Sizes = Sizes(14_000, 100)  # of which only vocabulary and width count
    sentence_columns: tuple[int, ...] = (1, 64)
    table_tokens: int = 60_000  # of each run of the table
    product: int = 2048  # rows and columns of the matrices that show the machine's peak
    updates: int = 40  # of the epoch that shows what the trainer costs
    text8_updates: int = 8  # of each row on text8, once its window of back-propagation is whole
    text8_rows: int | None = None  # the first so many; None: all


FULL = Plan()
QUICK = Plan(
    sizes=Sizes(vocab_size=50, hidden_size=8, batch_size=3, seq_len=4),
    rounds=2,
    few_rounds=1,
    seconds=0.0,
    orders=(1, 2),
    hidden_sizes=(4, 8),
    vocab_sizes=(20, 50),
    seq_lens=(2, 4),
    batch_sizes=(1, 3),
    scored_tokens=40,
    scored_chunks=((1, 10), (3, 4)),
    processes=1,
    large_vocab=100,
    head_vocab=50,
    head_widths=(8,),
    characters=Sizes(vocab_size=10, hidden_size=8, batch_size=3, seq_len=6),
    music=Sizes(vocab_size=88, hidden_size=8, batch_size=3, seq_len=6),
    speech=Sizes(vocab_size=10, hidden_size=8, batch_size=3, seq_len=6),
    frames=Sizes(vocab_size=10, hidden_size=8, batch_size=3, seq_len=6),
    sentences=Sizes(vocab_size=50, hidden_size=8),
    sentence_columns=(1, 3),
    table_tokens=200,
    product=32,
    updates=3,
    text8_updates=2,
    text8_rows=1,
)
