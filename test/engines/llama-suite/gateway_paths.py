"""For pytest: sends the paths that are not the gateway's own to the engine behind it."""
from urllib.parse import urlsplit, urlunsplit

import requests

OWN = ("/v1/", "/upstream/", "/api/", "/chat/completions", "/completions", "/embeddings", "/responses", "/rerank", "/models")
ENGINES = ("/v1/models", "/models", "/v1/health", "/v1/completions", "/completions", "/v1/stream")
send = requests.sessions.Session.request


def request(self, method, url, *args, **options):
    parts = urlsplit(url)
    own = parts.path.startswith(OWN) and parts.path not in ENGINES
    body = options.get("json")
    if own and isinstance(body, dict) and "model" not in body:
        # an engine with one model is not asked for it
        options["json"] = {**body, "model": "suite"}
    if not own:
        url = urlunsplit(parts._replace(path=f"/upstream/suite{parts.path}"))
    return send(self, method, url, *args, **options)


requests.sessions.Session.request = request
