"""The log of exceptions that the host's own code raised: ``fork``, ``ask``, selectors, ``on_event``.

The conversation goes on after them, so that without a log nobody would hear of them. They are never shown to the model,
because their messages can hold the host's secrets.
"""

from __future__ import annotations

_NOTE = "logged by prowess: raised in the host's "


def log_host_error(callback: str, error: BaseException) -> bool:
    """Write an exception that the host's ``callback`` raised to the logger ``prowess``, with its traceback.

    Returns ``True`` when it was written, and ``False`` when it had been written before.
    """
    import logging

    # On its way up an exception passes several places that log it. The note on it travels along.
    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return False
    error.add_note(_NOTE + callback)
    logging.getLogger("prowess").error("the host's %s raised %s", callback, type(error).__name__, exc_info=error)
    return True
