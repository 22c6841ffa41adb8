import assert from 'node:assert/strict'
import { HindsightClient, HindsightError } from '@vectorize-io/hindsight-client'
import { check } from '../js/check.mjs'

const client = new HindsightClient({ baseUrl: `${process.env.RING_URL}/api/memory/hindsight`, apiKey: 'any' })
const bank = 'npm client: a'

await check('the version', async () => assert.equal((await client.getVersion()).api_version, '1.1.0'))
await check('a bank is made', async () => assert.equal((await client.createBank(bank, { name: 'Npm', reflectMission: 'help' })).bank_id, bank))
await check('a text is retained', async () => {
  const { success, items_count: count } = await client.retain(bank, 'Alice works at Acme Corp in Berlin.', { documentId: 'doc-1', tags: ['people'], metadata: { src: 'chat' } })
  assert.deepEqual([success, count], [true, 1])
})
await check('several are retained', async () => {
  const { items_count: count } = await client.retainBatch(bank, [{ content: 'Carol plays the cello.' }, { content: 'Bob likes tea.', tags: ['people'] }])
  assert.equal(count, 2)
})
await check('a file is retained in the background', async () => {
  const { operation_ids: ids } = await client.retainFiles(bank, [new File(['Grace met Heidi in Paris.'], 'notes.txt', { type: 'text/plain' })])
  assert.equal(ids.length, 1)
  for (;;) {
    const { items } = await client.listMemories(bank, { q: 'Heidi' })
    if (items.length > 0) break
    await new Promise(resolve => { setTimeout(resolve, 100) })
  }
})
await check('recall finds it, with scores and what was asked for besides', async () => {
  const { results, chunks } = await client.recall(bank, 'Where does Alice work?', { includeChunks: true, includeEntities: true, trace: true, budget: 'mid' })
  assert.match(results[0].text, /Acme/)
  assert.equal(typeof results[0].scores.final, 'number')
  assert.deepEqual([results[0].document_id, results[0].metadata], ['doc-1', { src: 'chat' }])
  assert.ok(Object.keys(chunks).length > 0)
})
await check('tags narrow a recall', async () => {
  const { results } = await client.recall(bank, 'Alice cello tea', { tags: ['people'], tagsMatch: 'any_strict' })
  assert.ok(results.length > 0 && results.every(({ tags }) => tags.includes('people')))
})
await check('lists, documents and settings', async () => {
  assert.equal((await client.listMemories(bank, { limit: 2 })).items.length, 2)
  assert.match((await client.getDocument(bank, 'doc-1')).original_text, /Acme/)
  assert.equal((await client.updateBankConfig(bank, { retainMission: 'x' })).config.retain_mission, 'x')
  assert.equal((await client.resetBankConfig(bank)).config.retain_mission, null)
})
await check('directives come and go', async () => {
  const { id } = await client.createDirective(bank, 'short', 'Answer briefly')
  assert.equal((await client.listDirectives(bank)).items.length, 1)
  assert.equal((await client.updateDirective(bank, id, { content: 'z' })).content, 'z')
  await client.deleteDirective(bank, id)
  await assert.rejects(client.getDirective(bank, id), error => error instanceof HindsightError && error.statusCode === 404)
})
await check('what needs a model says which is missing', async () => {
  await assert.rejects(client.reflect(bank, 'Who is Alice?'), error => {
    assert.ok(error instanceof HindsightError)
    assert.equal(error.statusCode, 501)
    return true
  })
})
await check('a bank that is not there', async () => {
  await assert.rejects(client.recall('never made', 'x'), error => error.statusCode === 404 && /not found/.test(error.message))
})
await check('a bank is deleted', async () => {
  await client.deleteBank(bank)
  await assert.rejects(client.listMemories(bank), error => error.statusCode === 404)
})
