"""What goes wrong between here and the Hub, as errors that say what to do. No message ever holds a token."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from forget_datasets.errors import EnvironmentFault, UserError
from forget_datasets.hub.reference import Reference

_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"
_PASSING = (500, 502, 503, 504)
_WAITS = (1.0, 2.0, 4.0)  # seconds
_T = TypeVar("_T")


def patiently(read: Callable[[], _T]) -> _T:
    """The result of something that only reads, tried again while the server answers that it is unwell.

    The client itself does so for uploads and for the heads of files, and goes on with a file that broke off, but gives
    up on the first such answer to the request for a file or a listing. Raises what the last try raises.
    """
    for wait in _WAITS:
        try:
            return read()
        except Exception as error:
            if status_of(error) not in _PASSING:
                raise
        time.sleep(wait)
    return read()


@contextmanager
def hub_faults(reference: Reference, doing: str) -> Iterator[None]:
    """Turns whatever the Hub's client raises into UserError or EnvironmentFault.

    Args:
        reference: what was asked for.
        doing: what was being done, such as "reading owner/name".
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # the client passes on what its own libraries raise
        raise explained(error, reference, doing) from None  # its traceback may show headers


def explained(error: Exception, reference: Reference, doing: str) -> UserError:
    """The error to raise for what the Hub's client raised."""
    from huggingface_hub import constants, errors

    repo, where = reference.repo, f"{constants.ENDPOINT}/datasets/{reference.repo}"
    if constants.is_offline_mode() and isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
        return EnvironmentFault(
            f"{reference} is not whole in the local cache, and HF_HUB_OFFLINE forbids to fetch it. Unset it once."
        )
    if isinstance(error, errors.GatedRepoError):
        return UserError(f"{repo} is gated: ask for access at {where}, then {_LOG_IN}.")
    if isinstance(error, errors.RevisionNotFoundError):
        return UserError(f"{repo} has no revision '{reference.revision}'.{_releases(repo)}")
    if isinstance(error, errors.RepositoryNotFoundError):
        return UserError(f"no dataset {repo} on the Hub, or a private one: then {_LOG_IN}.")
    if isinstance(error, errors.HFValidationError):
        return UserError(f"the Hub takes no such name: {plain(error)}")
    status = status_of(error)
    if status == 401:
        return UserError(f"{doing}: the Hub does not know who you are (401): {_LOG_IN}.")
    if status == 403:
        return UserError(f"{doing}: the token has no right to do that (403). Use one that may write to {repo}.")
    if status == 412:
        return EnvironmentFault(f"{doing}: somebody else changed the repository in the meantime (412).")
    return EnvironmentFault(f"{doing}: {plain(error)}")


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status behind an error, which may lie some causes deep."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return int(response.status_code)
        error = error.__cause__
    return None


def plain(error: BaseException) -> str:
    """What an error says in one line, without a token: the server's words, or the first line of what caused it."""
    from huggingface_hub import get_token

    chain = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    served = next((said for each in chain if (said := getattr(each, "server_message", None))), None)
    said = served or next((line.strip() for line in str(chain[-1]).splitlines() if line.strip()), "no reason given")
    status = status_of(error)
    text = f"{' '.join(said.split())} ({type(chain[-1]).__name__ if status is None else status})"
    token = get_token()
    return text.replace(token, "<token>") if token else text


def _releases(repo: str) -> str:
    """The tags that there are, for a message."""
    from huggingface_hub import HfApi

    try:
        tags = [tag.name for tag in HfApi().list_repo_refs(repo, repo_type="dataset").tags]
    except Exception:  # a message about one fault must not end in another
        return ""
    return f" It has {', '.join(tags)}." if tags else " It has no releases."
