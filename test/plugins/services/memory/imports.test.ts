import t from 'tap'
import { memoryHost } from './host.js'

const WIRE = '/api/memory/hindsight/v1/default/banks'

t.test('an import that replaces documents is an audit row of the operation that was begun, and the bank tells how that ended', async t => {
  const host = await memoryHost(t)
  const retained = await host.call('POST', `${WIRE}/b/memories`, { items: [{ content: 'Alice lives in Rome.', document_id: 'd' }] })
  t.equal(retained.status, 200)
  const documents = Buffer.from(await (await host.fetch('/api/memory/banks/b/document-transfer')).arrayBuffer())
  const { operation_id: exporting } = (await host.call('POST', `${WIRE}/b/transfer/export`)).json as { operation_id: string }
  const { json: { result_metadata: { download_url: url } } } = await host.until(`${WIRE}/b/operations/${exporting}`, ({ status }) => status === 'completed')
  const whole = Buffer.from(await (await host.fetch(`/api/memory/hindsight${url}`)).arrayBuffer())
  const send = async (path: string, archive: Buffer): Promise<{ readonly status: number, readonly id: string }> => {
    const form = new FormData()
    form.append('file', new Blob([new Uint8Array(archive)]), 'a.zip')
    const answer = await host.fetch(path, { method: 'POST', body: form })
    const { operation_id: id } = await answer.json() as { readonly operation_id: string }
    if (answer.status === 202) await host.until(`${WIRE}/b/operations/${id}`, ({ status }) => status === 'completed')
    return { status: answer.status, id }
  }
  for (const path of ['/api/memory/banks/b/document-transfer', `${WIRE}/b/document-transfer`, `${WIRE}/b/transfer/import?mode=merge`]) {
    const [archive, conflict] = path.includes('mode=merge') ? [whole, '&document_conflict='] : [documents, '?on_conflict=']
    const before = (await host.audit()).length
    t.equal((await send(`${path}${conflict}skip`, archive)).status, 202)
    t.equal((await host.audit()).length, before, 'nothing is replaced')
    const { status, id } = await send(`${path}${conflict}replace`, archive)
    t.equal(status, 202)
    const row = { category: 'memory', action: 'memory.documents.replace', target: 'b' }
    t.match((await host.audit())[0], { ...row, outcome: 'pending', error: null, message: new RegExp(id), after: { operation_id: id } })
    const { items } = (await host.call('GET', `${WIRE}/b/audit-logs?transport=system&limit=100`)).json as { items: Array<Record<string, unknown>> }
    t.match(items.find(item => JSON.stringify(item).includes(id)), { action: /^import_/ }, 'the end has its line')
    t.equal((await send(`${path}${conflict}replace`, Buffer.from('no archive'))).status, 400)
    t.match((await host.audit())[0], { ...row, outcome: 'error', error: /400/ })
  }
})
