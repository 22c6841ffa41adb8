from llama_index.core.llms import ChatMessage
from llama_index.core.program import LLMTextCompletionProgram
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from typing import List, Literal

from check import BASE, CALLER, SENTENCE, check, fits_tool, requests_of


def llm(model="agent", **more):
    return OpenAILike(model=model, api_base=BASE, api_key="anything", is_chat_model=True, context_window=8192, **more)


class State(BaseModel):
    mood: Literal["good", "bad"]
    sure: bool


MESSAGES = [ChatMessage(role="user", content="Who are you?")]


@check("chat, whole and streamed")
async def _():
    assert llm().chat(MESSAGES).message.content == SENTENCE
    assert "".join(part.delta for part in llm().stream_chat(MESSAGES)) == SENTENCE
    assert (await llm().achat(MESSAGES)).message.content == SENTENCE
    assert "".join([part.delta async for part in await llm().astream_chat(MESSAGES)]) == SENTENCE


@check("complete, whole and streamed")
def _():
    assert llm().complete("Once").text == SENTENCE
    plain = OpenAILike(model="agent", api_base=BASE, api_key="anything", is_chat_model=False)
    assert plain.complete("Once").text == SENTENCE
    assert "".join(part.delta for part in plain.stream_complete("Once")) == SENTENCE


@check("a structured answer")
def _():
    answer = llm(should_use_structured_outputs=True, is_function_calling_model=False).as_structured_llm(State).chat(MESSAGES)
    assert isinstance(answer.raw, State), answer


@check("a tool")
def _():
    def embed_text(input: List[str]) -> str:
        """Compares texts"""
        return "done"

    tool = FunctionTool.from_defaults(embed_text)
    model = llm(CALLER, is_function_calling_model=True)
    answer = model.chat_with_tools([tool], user_msg="Who are you?", tool_required=True)
    fits_tool(model.get_tool_calls_from_response(answer)[0].tool_kwargs)


@check("a model that nobody knows is asked for once")
def _():
    took, error = requests_of(lambda: llm("nobody").chat(MESSAGES))
    assert error.status_code == 404 and took == 1, (took, error)
