import os

from llama_index.core.base.llms.types import ThinkingBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.ollama import Ollama
from pydantic import BaseModel

from check import CALLER, SENTENCE, URL, check, fits_tool

HOST = os.environ.get("RING_OLLAMA", URL)
MESSAGES = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="Who are you?")]


class State(BaseModel):
    sure: bool


def ollama(slot="agent", **more):
    return Ollama(model=slot, base_url=HOST, **more)


def embed_text(input: list[str]) -> str:
    """Compares texts"""
    return f"done with {len(input)}"


@check("metadata, which is the context of the slot")
def _():
    assert ollama().metadata.context_window == 8192


@check("complete and stream_complete")
def _():
    assert ollama().complete("Who are you?").text == SENTENCE
    assert "".join(piece.delta for piece in ollama().stream_complete("Who are you?")) == SENTENCE


@check("chat")
def _():
    answer = ollama().chat(MESSAGES)
    assert answer.message.content == SENTENCE
    assert answer.raw["usage"]["completion_tokens"] > 10


@check("stream_chat")
def _():
    pieces = list(ollama().stream_chat(MESSAGES))
    assert "".join(piece.delta for piece in pieces) == SENTENCE
    assert pieces[-1].message.content == SENTENCE


@check("achat and astream_chat")
async def _():
    assert (await ollama().achat(MESSAGES)).message.content == SENTENCE
    assert "".join([piece.delta async for piece in await ollama().astream_chat(MESSAGES)]) == SENTENCE


@check("a tool, whole and streamed, and its result")
def _():
    llm, tool = ollama(CALLER), FunctionTool.from_defaults(embed_text)
    answer = llm.chat_with_tools([tool], user_msg="x")
    [call] = llm.get_tool_calls_from_response(answer)
    assert call.tool_name == "embed_text"
    fits_tool(call.tool_kwargs)
    *_, last = llm.stream_chat_with_tools([tool], user_msg="x")
    fits_tool(llm.get_tool_calls_from_response(last)[0].tool_kwargs)
    assert str(llm.predict_and_call([tool], user_msg="x")) == "done with 2"
    result = ChatMessage(role="tool", content="done", additional_kwargs={"name": "embed_text"})
    assert ollama().chat([*MESSAGES, answer.message, result]).message.content == SENTENCE


@check("structured_predict and JSON mode")
def _():
    assert isinstance(ollama().structured_predict(State, PromptTemplate("Who are you?")), State)
    # the test's model has no word for where an object ends
    ollama(json_mode=True, additional_kwargs={"num_predict": 20}).chat(MESSAGES)


@check("thinking")
def _():
    answer = ollama("thinker", thinking=True).chat(MESSAGES)
    assert [block.content.strip() for block in answer.message.blocks if isinstance(block, ThinkingBlock)] == ["I should greet."]
    assert answer.message.content.strip() == "Hello there"
