"""Operations of the Python client at an engine that has models, above all those that the npm client lacks.

The client itself checks each answer by its models; the ring compares what engines answer.
"""
import asyncio
import base64
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))

import hindsight_client_api as api  # noqa: E402
from check import check, run_until  # noqa: E402

BANK, OTHER, COPY = "python-wire", "python-wire-restored", "python-wire-copy"
NO_ID = "00000000-0000-4000-8000-000000000000"


async def connected():
    return api.ApiClient(api.Configuration(host=f"{os.environ['RING_URL']}/api/memory/hindsight"))


client = run_until(connected())
banks, memories, documents = api.BanksApi(client), api.MemoryApi(client), api.DocumentsApi(client)
operations, models, transfer = api.OperationsApi(client), api.MentalModelsApi(client), api.BankTransferApi(client)
archives, audit, calls = api.DocumentTransferApi(client), api.AuditApi(client), api.LLMTracesApi(client)
webhooks, pages, directives, entities = api.WebhooksApi(client), api.KnowledgeBaseApi(client), api.DirectivesApi(client), api.EntitiesApi(client)


async def refused(awaitable):
    """What the server says to a call that one of the engines, or both, will not do."""
    try:
        await awaitable
    except api.ApiException as error:
        return error.status
    return None


async def asked(ask, is_over):
    """Asks until the answer will do; an operation whose model fails is tried again for minutes."""
    end = time.monotonic() + 300
    while not is_over(answer := await ask()):
        assert time.monotonic() < end, f"it does not end: {answer}"
        await asyncio.sleep(0.05)
    return answer


async def idle(bank=BANK):
    for status in ("pending", "processing"):
        await asked(lambda: operations.list_operations(bank, status=status), lambda found: found.total == 0)


async def ended(operation, bank=BANK):
    return await asked(lambda: operations.get_operation_status(bank, operation), lambda found: found.status not in ("pending", "processing"))


async def retain(*items, **options):
    return await memories.retain_memories(BANK, api.RetainRequest(items=[api.MemoryItem(content=api.Content(text), **rest) for text, rest in items], **options))


@check("the server tells of itself")
async def _():
    monitoring = api.MonitoringApi(client)
    assert (await monitoring.get_version()).api_version == "1.1.0"
    assert (await monitoring.get_liveness()).status == "alive"
    await monitoring.get_readiness()
    await api.BankTemplatesApi(client).get_bank_template_schema()


@check("a bank is made and filled")
async def _():
    assert (await banks.create_or_update_bank(BANK, api.CreateBankRequest(name="Python"))).bank_id == BANK
    assert (await retain(("Dave sails in Kiel. Erin runs in Oslo.", {"document_id": "doc-1", "tags": ["sport"]}))).success
    assert (await retain(("Erin swims as well.", {"document_id": "doc-1", "update_mode": "append"}))).success
    await idle()
    found = await memories.recall_memories(BANK, api.RecallRequest(query="Who sails in Kiel?"))
    assert any("sails" in each.text for each in found.results), found
    assert (await memories.reflect(BANK, api.ReflectRequest(query="Who sails?"))).text


@check("a bank has other names")
async def _():
    await banks.create_bank_alias(BANK, api.CreateBankAliasRequest(alias="python-alias"))
    assert [each.alias for each in (await banks.list_bank_aliases(BANK)).aliases] == ["python-alias"]
    assert (await memories.list_memories("python-alias")).total > 0
    await banks.set_bank_alias_primary(BANK, "python-alias", api.SetBankAliasPrimaryRequest(primary=True))
    await refused(banks.create_bank_alias(BANK, api.CreateBankAliasRequest(alias="python-alias")))
    await banks.delete_bank_alias(BANK, "python-alias")
    await refused(banks.delete_bank_alias(BANK, "python-alias"))


@check("prompts and strategies are shown before they are used")
async def _():
    await refused(banks.preview_prompt(BANK, api.PromptPreviewRequest(operation="retain")))
    await refused(memories.preview_consolidation_strategies(BANK, api.ConsolidationStrategiesPreviewRequest(strategies=[])))
    await banks.test_bank_llm(BANK)


@check("documents have a history and attachments")
async def _():
    assert (await documents.get_document_history(BANK, "doc-1")).total > 0
    picture = api.Base64AttachmentSource(type="base64", media_type="text/plain", data=base64.b64encode(b"Frank fishes.").decode())
    blocks = [
        api.ContentAnyOfInner(api.TextContentBlock(type="text", text="What Frank does is in the file.")),
        api.ContentAnyOfInner(api.FileContentBlock(type="file", source=picture, filename="frank.txt")),
    ]
    await refused(memories.retain_memories(BANK, api.RetainRequest(items=[api.MemoryItem(content=api.Content(blocks), document_id="doc-2")])))
    await idle()
    await refused(memories.get_bank_attachment(BANK, NO_ID))
    await documents.list_documents(BANK)
    await documents.list_document_chunks(BANK, "doc-1")


@check("lists are what the client's models say")
async def _():
    assert (await banks.list_banks(q=BANK)).total == 1
    await banks.get_agent_stats(BANK)
    await banks.get_memories_timeseries(BANK)
    await banks.get_bank_config(BANK)
    await memories.list_memories(BANK)
    await memories.list_tags(BANK)
    await memories.get_graph(BANK)
    await memories.list_observation_scopes(BANK)
    found = await entities.list_entities(BANK)
    await entities.get_entity(BANK, found.items[0].id)
    await entities.get_entity_graph(BANK)
    await operations.list_operations(BANK)


@check("mental models, directives, pages and webhooks")
async def _():
    made = await models.create_mental_model(BANK, api.CreateMentalModelRequest(name="Erin", source_query="What does Erin do?"))
    await ended(made.operation_id)
    await models.get_mental_model(BANK, made.mental_model_id)
    await models.list_mental_models(BANK, detail="full")
    await models.get_mental_model_history(BANK, made.mental_model_id)
    await models.delete_mental_model(BANK, made.mental_model_id)
    directive = await directives.create_directive(BANK, api.CreateDirectiveRequest(name="d", content="c"))
    await directives.list_directives(BANK)
    await directives.delete_directive(BANK, directive.id)
    page = await pages.create_knowledge_page(BANK, api.CreatePageRequest(name="Erin", source_query="What does Erin do?"))
    await idle()
    await pages.get_knowledge_base_tree(BANK)
    await pages.get_knowledge_page(BANK, page.page_id)
    await pages.search_knowledge_base(BANK, "Erin")
    await pages.delete_knowledge_node(BANK, page.page_id)
    hook = await webhooks.create_webhook(BANK, api.CreateWebhookRequest(url="https://example.com/hook", enabled=False))
    await webhooks.list_webhooks(BANK)
    await webhooks.delete_webhook(BANK, hook.id)


@check("what was done and asked is on record")
async def _():
    listed = await audit.list_audit_logs(BANK, action="retain")
    assert listed.total > 0
    await audit.get_audit_log(BANK, listed.items[0].id)
    await refused(audit.get_audit_log(BANK, NO_ID))
    await audit.audit_log_stats(BANK)
    assert (await calls.list_llm_requests(BANK)).total > 0
    await calls.list_llm_requests(BANK, group=True)
    await calls.llm_request_stats(BANK)


@check("a bank is exported, restored under another name and copied")
async def _():
    exported = await ended((await transfer.export_bank_transfer(BANK, include_history=True)).operation_id)
    key = exported.result_metadata["download_url"].removeprefix("/v1/default/files/download/")
    archive = await (await archives.download_file_without_preload_content(key)).read()
    restored = await transfer.import_bank_transfer(BANK, ("bank.zip", bytes(archive)), mode="restore", target_bank_id=OTHER)
    assert (await ended(restored.operation_id)).status == "completed"
    await idle(OTHER)
    copied = await transfer.clone_bank(BANK, COPY)
    assert (await ended(copied.operation_id)).status == "completed"
    count = (await memories.list_memories(BANK)).total
    for each in (OTHER, COPY):
        assert (await memories.list_memories(each)).total == count
        await banks.delete_bank(each)


@check("the bank is emptied and deleted")
async def _():
    await memories.clear_bank_memories(BANK, type="observation")
    await memories.clear_bank_memories(BANK)
    await banks.delete_bank(BANK)
    await refused(memories.list_memories(BANK))


run_until(client.close())
