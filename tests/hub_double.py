"""A double of the Hub on the loopback, for the real client: repositories in memory, and faults on demand.

It knows what the client asks for when it creates, commits, tags, lists and downloads datasets, and nothing else. An
unknown request is answered with 501 and kept in `Hub.unknown`, so that a test can be sure that there was none.
"""

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LFS = (".parquet", ".arrow")
"""Endings of what goes to the store for large files."""


def git_oid(data: bytes) -> str:
    """The name of a blob in git."""
    return sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class Repo:
    """A dataset: the tree of every commit, oldest first, and where tags point."""

    private: bool = False
    gated: str | bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, tree: dict[str, bytes]) -> str:
        """Adds a commit to main and gives its name."""
        name = sha1(repr((len(self.commits), sorted(tree.items()))).encode()).hexdigest()
        self.commits[name] = tree
        return name

    @property
    def head(self) -> str:
        return next(reversed(self.commits))

    @property
    def files(self) -> dict[str, bytes]:
        """What main holds."""
        return self.commits[self.head]

    def resolve(self, revision: str) -> str | None:
        """The commit of a branch, tag or commit."""
        if revision == "main":
            return self.head
        return self.tags.get(revision, revision if revision in self.commits else None)


@dataclass
class Fault:
    """What to do to the next `times` requests whose "METHOD path" a pattern matches.

    status  answers with it, and does nothing
    drop    hangs up: "before" the request was carried out, or "after"
    cut     sends so many bytes of the body, then hangs up
    says    the words of an answer with a status
    before  is called first
    """

    pattern: str
    status: int = 0
    drop: str = ""
    cut: int = -1
    times: int = 1
    says: str = "no luck"
    before: Callable[[], None] | None = None


@dataclass
class Hub:
    """State of the double. `token` is the one that may write; a gated repository is read with it alone."""

    token: str = "hf_dummy"
    repos: dict[str, Repo] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    endpoint: str = ""

    def create(self, name: str, files: dict[str, bytes] | None = None, **settings: Any) -> Repo:
        """A repository with a first commit, as the Hub makes it."""
        self.repos[name] = repo = Repo(**settings)
        repo.commit({".gitattributes": b"*.parquet filter=lfs\n", **(files or {})})
        return repo

    def fault(self, request: str) -> Fault | None:
        """The fault that a request meets, once it is its turn."""
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.pattern, request):
                fault.times -= 1
                if fault.before:
                    fault.before()
                return fault
        return None


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    """Serves the double on a free port until the block ends; `hub.endpoint` is its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Says nothing."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, BrokenPipeError):
            self.close_connection = True

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.url, self.query = unquote(parts.path), parse_qs(parts.query)
        request = f"{self.command} {self.url}"
        self.hub.requests.append(request)
        fault = self.hub.fault(request)
        self.cut = fault.cut if fault else -1
        if fault and fault.status:
            return self._send(fault.status, {"error": fault.says})
        if fault and fault.drop == "before":
            return self._hang_up()
        self.silent = bool(fault and fault.drop == "after")
        for old, new in self.hub.renamed.items():
            if re.search(rf"/{re.escape(old)}(?=[/.]|$)", self.url):
                return self._send(307, {}, {"Location": self.path.replace(old, new, 1)})
        for method, pattern, action in _ROUTES:
            if method == self.command and (match := re.fullmatch(pattern, self.url)):
                return getattr(self, action)(*match.groups())
        self.hub.unknown.append(request)
        return self._send(501, {"error": f"{request} is not known here"})

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def _send(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if getattr(self, "silent", False):
            return self._hang_up()
        self.send_response(status)
        headers = {"Content-Length": str(len(data)), "Content-Type": "application/json", **(headers or {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return None
        if 0 <= self.cut < len(data):
            self.wfile.write(data[: self.cut])
            self.wfile.flush()
            return self._hang_up()
        self.wfile.write(data)
        return None

    def _missing(self, code: str, status: int = 404) -> None:
        self._send(status, {"error": code}, {"X-Error-Code": code, "X-Error-Message": code})

    @property
    def _may_write(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def _repo(self, name: str, write: bool = False) -> Repo | None:
        """The repository of a request, or None once that it cannot be had has been answered."""
        repo = self.hub.repos.get(name)
        if write and not self._may_write:
            self._send(403 if "Authorization" in self.headers else 401, {"error": "You may not write here"})
        elif repo is None or (repo.private and not self._may_write):
            self._missing("RepoNotFound", 404 if "Authorization" in self.headers else 401)
        else:
            return repo
        return None

    def _tree(self, name: str, revision: str) -> tuple[Repo, str] | None:
        repo = self._repo(name)
        if repo is None:
            return None
        commit = repo.resolve(revision)
        if commit is None:
            self._missing("RevisionNotFound")
            return None
        return repo, commit

    def create(self) -> None:
        asked = json.loads(self.body)
        name = f"{asked['organization']}/{asked['name']}"
        if not self._may_write:
            return self._send(401, {"error": "Invalid credentials"})
        if name in self.hub.repos:
            return self._send(409, {"error": "You already created this dataset repo"})
        self.hub.create(name, private=asked.get("visibility") == "private" or bool(asked.get("private")))
        return self._send(200, {"url": f"{self.hub.endpoint}/datasets/{name}", "name": name, "id": name})

    def settings(self, name: str) -> None:
        if repo := self._repo(name, write=True):
            repo.gated = json.loads(self.body).get("gated", repo.gated)
            self._send(200, {})

    def info(self, name: str, revision: str = "main") -> None:
        if found := self._tree(name, revision or "main"):
            repo, commit = found
            siblings = [{"rfilename": path} for path in sorted(repo.commits[commit])]
            body = {"id": name, "sha": commit, "private": repo.private, "gated": repo.gated, "tags": [], "downloads": 0}
            self._send(200, {**body, "siblings": siblings, "lastModified": "2026-01-01T00:00:00.000Z"})

    def refs(self, name: str) -> None:
        if repo := self._repo(name):
            tags = [{"name": t, "ref": f"refs/tags/{t}", "targetCommit": c} for t, c in repo.tags.items()]
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.head}
            self._send(200, {"branches": [main], "tags": tags, "converts": []})

    def tree(self, name: str, revision: str, place: str | None) -> None:
        if found := self._tree(name, revision):
            files = found[0].commits[found[1]]
            under = f"{place.strip('/')}/" if place else ""
            if under and not any(path.startswith(under) for path in files):
                return self._missing("EntryNotFound")
            deep = self.query.get("recursive", ["false"])[0].lower() in ("true", "1")
            self._send(200, list(_listing(files, under, deep)))
        return None

    def paths_info(self, name: str, revision: str) -> None:
        if found := self._tree(name, revision):
            files = found[0].commits[found[1]]
            asked = json.loads(self.body) if self.body.startswith(b"{") else parse_qs(self.body.decode())
            entries = {entry["path"]: entry for entry in _listing(files, "", True)}
            self._send(200, [entries[path] for path in asked["paths"] if path in entries])

    def preupload(self, name: str, revision: str) -> None:
        if repo := self._repo(name, write=True):
            answer = []
            for entry in json.loads(self.body)["files"]:
                there, large = repo.files.get(entry["path"]), entry["path"].endswith(LFS)
                oid = None if there is None else sha256(there).hexdigest() if large else git_oid(there)
                mode = "lfs" if large else "regular"
                answer.append({"path": entry["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
            self._send(200, {"files": answer})

    def lfs_batch(self, name: str) -> None:
        if self._repo(name, write=True):
            objects = []
            for entry in json.loads(self.body)["objects"]:
                upload = {"href": f"{self.hub.endpoint}/lfs/{entry['oid']}", "header": {}}
                known = entry["oid"] in self.hub.blobs
                objects.append({**entry, **({} if known else {"actions": {"upload": upload}})})
            self._send(200, {"transfer": "basic", "objects": objects})

    def lfs_put(self, oid: str) -> None:
        if sha256(self.body).hexdigest() != oid:
            return self._send(400, {"error": "that is another file"})
        self.hub.blobs[oid] = self.body
        return self._send(200, {})

    def commit(self, name: str, revision: str) -> None:
        repo = self._repo(name, write=True)
        if repo is None:
            return None
        lines = [json.loads(line) for line in self.body.splitlines()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit", repo.head) != repo.head:
            return self._send(412, {"error": "A commit has happened since. Please refresh and try again."})
        tree = dict(repo.files)
        for value in (line["value"] for line in lines if line["key"] == "deletedFile"):
            tree.pop(value["path"], None)
        for value in (line["value"] for line in lines if line["key"] == "file"):
            tree[value["path"]] = base64.b64decode(value["content"])
        for value in (line["value"] for line in lines if line["key"] == "lfsFile"):
            tree[value["path"]] = self.hub.blobs[value["oid"]]
        commit = repo.commit(tree)
        return self._send(200, {"commitUrl": f"{self.hub.endpoint}/c/{commit}", "commitOid": commit})

    def tag(self, name: str, revision: str) -> None:
        if repo := self._repo(name, write=True):
            asked, commit = json.loads(self.body)["tag"], repo.resolve(revision)
            if asked in repo.tags:
                return self._send(409, {"error": "Tag already exists"})
            if commit is None:
                return self._missing("RevisionNotFound")
            repo.tags[asked] = commit
            self._send(200, {})
        return None

    def resolve(self, name: str, revision: str, path: str) -> None:
        found = self._tree(name, revision)
        if found is None:
            return None
        repo, commit = found
        if repo.gated and not self._may_write:
            return self._missing("GatedRepo", 403 if "Authorization" in self.headers else 401)
        data = repo.commits[commit].get(path)
        if data is None:
            self.headers_sent = True
            body = {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found", "X-Repo-Commit": commit}
            return self._send(404, {"error": "Entry not found"}, body)
        etag = sha256(data).hexdigest() if path.endswith(LFS) else git_oid(data)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            return self._send(200, data, headers)
        first, last = int(wanted[1]), min(int(wanted[2] or len(data) - 1), len(data) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self._send(206, data[first : last + 1], headers)

    def valid(self) -> None:
        self._send(200, {"errors": [], "warnings": []})


_NAME = r"([^/]+/[^/]+)"
_ROUTES = (
    ("GET", "/api/agent-harnesses", "valid"),
    ("POST", "/api/repos/create", "create"),
    ("POST", "/api/validate-yaml", "valid"),
    ("PUT", f"/api/datasets/{_NAME}/settings", "settings"),
    ("GET", f"/api/datasets/{_NAME}", "info"),
    ("GET", f"/api/datasets/{_NAME}/revision/(.+)", "info"),
    ("GET", f"/api/datasets/{_NAME}/refs", "refs"),
    ("GET", f"/api/datasets/{_NAME}/tree/([^/]+)(/.*)?", "tree"),
    ("POST", f"/api/datasets/{_NAME}/paths-info/(.+)", "paths_info"),
    ("POST", f"/api/datasets/{_NAME}/preupload/(.+)", "preupload"),
    ("POST", rf"/datasets/{_NAME}\.git/info/lfs/objects/batch", "lfs_batch"),
    ("PUT", "/lfs/([0-9a-f]{64})", "lfs_put"),
    ("POST", f"/api/datasets/{_NAME}/commit/(.+)", "commit"),
    ("POST", f"/api/datasets/{_NAME}/tag/(.+)", "tag"),
    ("GET", f"/datasets/{_NAME}/resolve/([^/]+)/(.+)", "resolve"),
    ("HEAD", f"/datasets/{_NAME}/resolve/([^/]+)/(.+)", "resolve"),
)


def _listing(files: dict[str, bytes], under: str, deep: bool) -> Iterator[dict[str, Any]]:
    """Files below a folder, with the folders; without `deep` its own entries alone."""
    folders = set()
    for path, data in sorted(files.items()):
        if not path.startswith(under):
            continue
        inner = path[len(under) :].split("/")
        for depth in range(1, len(inner) if deep else min(2, len(inner))):
            folder = under + "/".join(inner[:depth])
            if folder not in folders:
                folders.add(folder)
                yield {"type": "directory", "path": folder, "size": 0, "oid": sha1(folder.encode()).hexdigest()}
        if deep or len(inner) == 1:
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_oid(data)}
            if path.endswith(LFS):
                entry["lfs"] = {"oid": sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            yield entry
