"""Exceptions of the host's own code (``fork``, ``ask``, selectors, ``on_event``): for the host, never for the model.

The conversation goes on, so nobody would hear of them otherwise; and what they say can hold the host's secrets.
"""

from __future__ import annotations

_NOTE = "logged by prowess: raised in the host's "


def log_host_error(where: str, error: BaseException) -> bool:
    """Write an exception that the host's ``where`` raised to the logger ``prowess``, with its traceback.

    Returns ``False`` for one that was written already: on its way up it passes more than one place that would.
    """
    import logging  # noqa: PLC0415 - few hosts have such errors

    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return False
    error.add_note(_NOTE + where)
    logging.getLogger("prowess").error("the host's %s raised %s", where, type(error).__name__, exc_info=error)
    return True
