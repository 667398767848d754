"""Recurrent language models that can be compared honestly.

In Python: `load` gives a trained model of text, `load_music` one of music, `load_speech` one of speech; `make_network`
gives a fresh network, and `results` what runs have left. `read_midi` and `write_midi` turn a MIDI file into frames and
back. Each is imported when it is first used, so that what needs no torch does not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hornn.data.midi import read_midi, write_midi
    from hornn.research import make_network, results
    from hornn.use.growing import GrowingText
    from hornn.use.model import Model, load
    from hornn.use.music_model import MusicModel, PieceScore, load_music
    from hornn.use.scoring import Score
    from hornn.use.speech_model import SpeechModel, Transcript, load_speech

__all__ = [
    "GrowingText",
    "Model",
    "MusicModel",
    "PieceScore",
    "Score",
    "SpeechModel",
    "Transcript",
    "load",
    "load_music",
    "load_speech",
    "make_network",
    "read_midi",
    "results",
    "write_midi",
]

_PLACES = {
    "GrowingText": "hornn.use.growing",
    "Model": "hornn.use.model",
    "Score": "hornn.use.scoring",
    "make_network": "hornn.research",
    "load": "hornn.use.model",
    "MusicModel": "hornn.use.music_model",
    "PieceScore": "hornn.use.music_model",
    "load_music": "hornn.use.music_model",
    "SpeechModel": "hornn.use.speech_model",
    "Transcript": "hornn.use.speech_model",
    "load_speech": "hornn.use.speech_model",
    "read_midi": "hornn.data.midi",
    "write_midi": "hornn.data.midi",
    "results": "hornn.research",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # which would take any name for one of these

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("importlib.metadata").version(__name__)
        if name not in _PLACES:
            raise AttributeError(f"module 'hornn' has no attribute {name!r}; it has: {', '.join(__all__)}")
        return getattr(import_module(_PLACES[name]), name)
