import operator
from functools import reduce
from typing import Literal

import openai
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from check import BASE, CALLER, SENTENCE, TOOL, check, fits_tool, requests_of

ASKED = [SystemMessage("Be brief."), HumanMessage("Who are you?")]


class State(BaseModel):
    """A state."""

    mood: Literal["good", "bad"]
    sure: bool


def tries(name, **more):
    def chat(model):
        return ChatOpenAI(model=model, base_url=BASE, api_key="anything", **more)

    @check(f"{name}: invoke and batch")
    def _():
        answer = chat("agent").invoke(ASKED)
        assert answer.text == SENTENCE and answer.usage_metadata["total_tokens"] > 0
        assert [one.text for one in chat("agent").batch(["one", "two"])] == [SENTENCE, SENTENCE]

    @check(f"{name}: stream and astream")
    async def _():
        assert reduce(operator.add, chat("agent").stream(ASKED)).text == SENTENCE
        assert "".join([chunk.text async for chunk in chat("agent").astream(ASKED)]) == SENTENCE

    @check(f"{name}: with_structured_output")
    def _():
        assert isinstance(chat("agent").with_structured_output(State).invoke("x"), State)

    @check(f"{name}: bind_tools, whole and streamed, and the result")
    def _():
        model = chat(CALLER).bind_tools([{"type": "function", "function": TOOL}], tool_choice="required")
        answer = model.invoke(ASKED)
        fits_tool(answer.tool_calls[0]["args"])
        fits_tool(reduce(operator.add, model.stream(ASKED)).tool_calls[0]["args"])
        after = chat("agent").invoke([*ASKED, answer, ToolMessage("done", tool_call_id=answer.tool_calls[0]["id"])])
        assert after.text == SENTENCE, after

    @check(f"{name}: a model that nobody knows is asked for once")
    def _():
        took, error = requests_of(lambda: chat("nobody").invoke(ASKED))
        assert isinstance(error, openai.NotFoundError) and took == 1, (took, error)


tries("chat completions")
tries("responses", use_responses_api=True)


@check("completions")
def _():
    assert OpenAI(model="agent", base_url=BASE, api_key="anything").invoke("Once") == SENTENCE


@check("embeddings")
def _():
    # by default it sends numbers of a tokenizer that is downloaded
    model = OpenAIEmbeddings(model="embed", base_url=BASE, api_key="anything", check_embedding_ctx_length=False)
    assert len(model.embed_documents(["one", "two"])) == 2
