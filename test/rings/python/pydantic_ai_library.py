import os
from typing import List, Literal

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput, ToolOutput, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from check import BASE, CALLER, SENTENCE, TOOL, check, fits_tool, requests_of, run_until

provider = OpenAIProvider(openai_client=AsyncOpenAI(base_url=BASE, api_key="anything"))


class State(BaseModel):
    mood: Literal["good", "bad"]
    sure: bool


class Texts(BaseModel):
    """Compares texts"""

    input: List[str]


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
        assert isinstance((await agent(output_type=NativeOutput(State)).run("x")).output, State)
        answer = await agent(CALLER, output_type=ToolOutput(Texts, name=TOOL["name"])).run("x")
        fits_tool(answer.output.model_dump())

    @check(f"{name}: a tool, whole and streamed")
    async def _():
        called = []

        def embed_text(input: List[str]) -> str:
            """Compares texts"""
            called.append({"input": input})
            return "done"

        # the test's model never stops calling
        order = {"user_prompt": "x", "usage_limits": UsageLimits(request_limit=2)}
        model = agent(CALLER, tools=[embed_text])
        try:
            await model.run(**order)
        except UsageLimitExceeded:
            assert len(called) == 2, called
        try:
            async with model.run_stream(**order) as result:
                await result.get_output()
        except UsageLimitExceeded:
            assert len(called) == 4, called
        assert len(called) == 4, called
        for args in called:
            fits_tool(args)

    @check(f"{name}: a model that nobody knows is asked for once")
    def _():
        took, error = requests_of(lambda: run_until(agent("nobody").run("x")))
        assert isinstance(error, ModelHTTPError) and error.status_code == 404 and took == 1, (took, error)


tries("chat completions", OpenAIChatModel)
tries("responses", OpenAIResponsesModel)


def tries_by_name(kind):
    """What knows the gateway by OPENAI_BASE_URL alone."""

    @check(f"{kind}: by its name and OPENAI_BASE_URL alone")
    async def _():
        assert (await Agent(f"{kind}:agent").run("Who are you?")).output == SENTENCE
        answer = await Agent(f"{kind}:{CALLER}", output_type=ToolOutput(Texts, name=TOOL["name"])).run("x")
        fits_tool(answer.output.model_dump())
        called = []
        agent = Agent(f"{kind}:{CALLER}")

        @agent.tool_plain
        def embed_text(input: List[str]) -> str:
            """Compares texts"""
            called.append({"input": input})
            return "done"

        try:
            # the test's model never stops calling
            await agent.run("x", usage_limits=UsageLimits(request_limit=1))
        except UsageLimitExceeded:
            pass
        assert len(called) == 1, called
        fits_tool(called[0])


os.environ.update(OPENAI_BASE_URL=BASE, OPENAI_API_KEY="anything")
for kind in ("openai", "openai-responses", "openai-chat"):
    tries_by_name(kind)
