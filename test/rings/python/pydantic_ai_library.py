from typing import Literal

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from check import BASE, REAL, SENTENCE, check, requests_of, run_until

provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=BASE, api_key="anything"))


class State(BaseModel):
    mood: Literal["good", "bad"]
    sure: bool


def tries(name, kind):
    def agent(slot="agent", **more):
        return Agent(kind(slot, provider=provider), instructions="Be brief.", **more)

    @check(f"{name}: run, and on with its messages")
    async def _():
        first = await agent().run("Who are you?")
        assert first.output == SENTENCE
        second = await agent().run("And now?", message_history=first.all_messages())
        assert second.output == SENTENCE

    @check(f"{name}: run_stream")
    async def _():
        async with agent().run_stream("Who are you?") as result:
            pieces = [piece async for piece in result.stream_text(delta=True)]
        assert "".join(pieces) == SENTENCE

    @check(f"{name}: an output type, by a schema and by a tool")
    async def _():
        from pydantic_ai import NativeOutput

        assert isinstance((await agent(output_type=NativeOutput(State)).run("x")).output, State)
        # a model whose template knows no tools is held to one by the embedded engine alone
        if not REAL:
            assert isinstance((await agent(output_type=State).run("x")).output, State)

    @check(f"{name}: a model that nobody knows is asked for once")
    def _():
        took, error = requests_of(lambda: run_until(agent("nobody").run("x")))
        assert isinstance(error, ModelHTTPError) and error.status_code == 404 and took == 1, (took, error)


tries("chat completions", OpenAIChatModel)
tries("responses", OpenAIResponsesModel)
