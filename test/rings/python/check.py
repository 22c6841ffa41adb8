"""What the programs beside this share: the gateway, what its slots say, and a line of JSON for each thing tried."""
import asyncio
import gc
import inspect
import json
import os
import time
import traceback
import urllib.request

URL = os.environ["RING_URL"]
# whether it has slots that hear, speak and paint as well
MEDIA = os.environ["RING_ENGINE"] == "llama"
SENTENCE = os.environ["RING_SENTENCE"]
BASE = f"{URL}/v1"
LOOP = asyncio.new_event_loop()

# between what is tried, and never in the middle: litellm leaves streams that it has read to the collector, and where that closes
# one while httpcore holds the lock of its connections, which closing takes as well, the program waits for itself for ever
gc.disable()

MESSAGES = [{"role": "user", "content": "Who are you?"}]

# a tool, and a slot whose model calls it
CALLER = "caller"
TOOL = {
    "name": "embed_text",
    "description": "Compares texts",
    "parameters": {
        "type": "object",
        "properties": {"input": {"type": "array", "items": {"type": "string"}}},
        "required": ["input"],
    },
}


def fits_tool(args):
    """Whether these are the arguments that the model calls it with."""
    if isinstance(args, str):
        args = json.loads(args)
    assert args == {"input": ["one", "two"]}, args


def check(name):
    """Tries the function under it, which may be a coroutine, and prints how that went."""

    def run(work):
        line = {"name": name}
        try:
            result = work()
            if inspect.isawaitable(result):
                run_until(result)
        except Exception:
            line["error"] = traceback.format_exc()[-3000:]
        gc.collect()
        print(json.dumps(line), flush=True)

    return run


def run_until(awaitable):
    """What it comes to; always in the same event loop, as in a program, because clients keep their connections."""
    return LOOP.run_until_complete(awaitable)


def told(path):
    with urllib.request.urlopen(f"{URL}{path}", timeout=60) as answer:
        return json.load(answer)


def count_requests():
    """How many requests of /v1 have ended. Waits for those that have not: one whose client left ends a little later."""
    until = time.monotonic() + 120
    while active := told("/api/requests")["requests"]:
        assert time.monotonic() < until, f"still active: {json.dumps(active)}; slots: {json.dumps(told('/api/slots'))}"
        time.sleep(0.02)
    return told("/api/stats/requests?window_s=3600")["requests"]


def requests_of(work):
    """How many requests of /v1 the work took, and what it raised: what a client repeats by itself."""
    before = count_requests()
    try:
        work()
    except Exception as error:
        return count_requests() - before, error
    raise AssertionError("it did not fail")


def wav(seconds=1.0):
    """Silence."""
    import io
    import wave

    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(int(seconds * 32_000)))
    return file.getvalue()
