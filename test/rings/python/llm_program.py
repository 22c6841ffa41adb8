import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from check import BASE, SENTENCE, check

home = tempfile.mkdtemp()
Path(home, "extra-openai-models.yaml").write_text(
    f"- model_id: here\n  model_name: agent\n  api_base: {BASE}\n  api_key_name: none\n  supports_schema: true\n"
    f"- model_id: here-complete\n  model_name: agent\n  api_base: {BASE}\n  completion: true\n"
)
ENV = {**os.environ, "LLM_USER_PATH": home, "OPENAI_API_KEY": "anything"}
PROGRAM = str(Path(sys.executable).with_name("llm"))


def llm(*args):
    done = subprocess.run([PROGRAM, *args], env=ENV, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@check("a prompt, streamed as by default")
def _():
    assert llm("-m", "here", "--key", "x", "Who are you?") == SENTENCE


@check("a prompt, whole, with a system prompt and options")
def _():
    assert llm("-m", "here", "--key", "x", "--no-stream", "-s", "Be brief.", "-o", "temperature", "0", "Who are you?") == SENTENCE


@check("a conversation that goes on")
def _():
    assert llm("-c", "-m", "here", "--key", "x", "And you?") == SENTENCE


@check("a schema")
def _():
    schema = json.dumps({"type": "object", "properties": {"mood": {"enum": ["good", "bad"]}}, "required": ["mood"]})
    assert json.loads(llm("-m", "here", "--key", "x", "--schema", schema, "x"))["mood"] in ("good", "bad")


@check("a completion model")
def _():
    assert llm("-m", "here-complete", "--key", "x", "Once") == SENTENCE
