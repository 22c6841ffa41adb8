import { once } from 'node:events'
import { readdir, truncate, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { unzip } from '../../../plugins/services/memory-engine/transfer/zip.js'
import { answered } from '../../answered.js'
import { zipInMemory } from '../../plugins/services/memory-engine/models-support.js'
import { fakeHindsight, type FakeHindsight } from '../../plugins/services/memory/fake-hindsight.js'
import { memoryHost, type MemoryHost } from '../../plugins/services/memory/host.js'
import { FakeProcess } from '../support.js'

const WIRE = '/api/memory/hindsight/v1/default/banks'
const DOCUMENTS = 2000

/** An archive of as many documents, made of one of a single document. */
async function largeArchive (host: MemoryHost): Promise<Buffer> {
  await host.call('POST', '/api/memory/add', { text: 'Note of the sea.', document_id: 'd', dataset: 'project:one' })
  const { json: { operation_id: id } } = await host.call('POST', `${WIRE}/project__one/transfer/export`)
  const { json: { result_metadata: { download_url: url } } } = await host.until(`${WIRE}/project__one/operations/${id}`, ({ status }) => status === 'completed')
  const files = unzip(Buffer.from(await (await host.fetch(`/api/memory/hindsight${url}`)).arrayBuffer()), 1e6)
  const zip = zipInMemory()
  for (const [name, bytes] of files) {
    if (name === 'manifest.json') zip.add(name, Buffer.from(JSON.stringify({ ...JSON.parse(bytes.toString()) as object, document_count: DOCUMENTS, fact_count: DOCUMENTS })))
    else if (!name.startsWith('documents/')) zip.add(name, bytes)
    else for (let i = 0; i < DOCUMENTS; i++) zip.add(name.replace(/[^/]+(?=\.json$)/, String(i).padStart(6, '0')), Buffer.from(bytes.toString().replaceAll('"d"', `"d${i}"`)))
  }
  return zip.end()
}

t.test('an interrupted import is undone, into a new bank and into one that is there', async t => {
  const host = await memoryHost(t)
  const file = join(t.testdir(), 'large.zip')
  await writeFile(file, await largeArchive(host))
  await host.call('POST', '/api/memory/add', { text: 'The sea is cold.', document_id: 'd5', dataset: 'project:old' })
  const texts = async (): Promise<unknown> => (await host.call('GET', `${WIRE}/project__old/memories/list`)).json
  const [banks, before] = [(await host.call('GET', WIRE)).json, await texts()]
  for (const [bank, ...rule] of [['project__new'], ['project__old', '--on-conflict', 'replace']] as const) {
    const svc = new FakeProcess()
    const isBegun = answered(`POST ${WIRE}/${bank}/transfer/import`)
    const left = svc.run('memory', 'import', bank, file, ...rule, '--url', host.baseUrl)
    await isBegun
    svc.send('SIGINT')
    t.match(await left, { code: 130, stdout: /^$/, stderr: `The import is cancelled, and ${bank} is as it was.\n` })
    t.match((await host.call('GET', `${WIRE}/${bank}/operations?type=import_bank`)).json, { total: 1, operations: [{ status: 'cancelled' }] })
  }
  t.same((await host.call('GET', WIRE)).json, banks, 'no bank is new')
  t.same(await texts(), before)
})

/** `svc` with a memory whose server answers an import and its operation as it is told. */
async function served (t: Test, operation: (request: IncomingMessage, response: ServerResponse) => void): Promise<{
  readonly fake: FakeHindsight
  /** Runs an import or export, which is interrupted before the server has answered the request that begins it. */
  readonly interrupted: (...args: readonly string[]) => ReturnType<FakeProcess['run']>
}> {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  fake.instead.set('/v1/default/banks/shared/operations/op-7', operation)
  return {
    fake,
    interrupted: (...args) => {
      const svc = new FakeProcess()
      for (const what of ['import', 'export']) {
        fake.instead.set(`/v1/default/banks/shared/transfer/${what}`, (_request, response) => {
          svc.send('SIGINT')
          say(response, 202, { operation_id: 'op-7', status: 'pending' })
        })
      }
      return svc.run('memory', ...args, '--url', host.baseUrl)
    }
  }
}

function say (response: ServerResponse, status: number, value: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

t.test('an interruption before the answer cancels what had begun, and says what a server may keep', async t => {
  const folder = t.testdir({ 'a.zip': 'PK' })
  const { fake, interrupted } = await served(t, (_request, response) => say(response, 200, { success: true, operation_id: 'op-7' }))
  t.match(await interrupted('import', 'shared', join(folder, 'a.zip')), {
    code: 130, stdout: /^$/, stderr: 'The import is cancelled. What a Hindsight server has imported, and what it was importing just now, stays in shared.\n'
  })
  t.match(await interrupted('export', 'shared', '-o', join(folder, 'b.zip')), { code: 130, stdout: /^$/, stderr: 'The export of shared is cancelled.\n' })
  t.same(fake.calls.filter(call => call.includes('op-7')), ['DELETE /v1/default/banks/shared/operations/op-7', 'DELETE /v1/default/banks/shared/operations/op-7'])
  t.same(await readdir(folder), ['a.zip'])
})

t.test('what can no longer be cancelled is told: one that is being committed, one that has ended, one that does not answer', async t => {
  const file = join(t.testdir({ 'a.zip': 'PK' }), 'a.zip')
  let now: object = { operation_id: 'op-7', status: 'processing' }
  let refusal = 409
  const { interrupted } = await served(t, ({ method }, response) => {
    if (method === 'DELETE') say(response, refusal, { detail: 'it cannot be cancelled' })
    else say(response, 200, now)
  })
  t.match(await interrupted('import', 'shared', file), {
    code: 130, stderr: 'The import cannot be cancelled any more: it is being committed. It is operation op-7 of shared.\n'
  })
  now = { operation_id: 'op-7', status: 'completed' }
  t.match(await interrupted('import', 'shared', file), { code: 130, stderr: 'The import had already ended as completed.\n' })
  now = { operation_id: 'op-7', status: 'failed', error_message: 'the disk is full' }
  t.match(await interrupted('import', 'shared', file), { code: 130, stderr: 'The import had already ended as failed: the disk is full.\n' })
  now = { status: 7 }
  t.match(await interrupted('import', 'shared', file), { code: 130, stderr: /^Whether the import is cancelled is unknown: .+ It is operation op-7 of shared\.\n$/s })
  refusal = 500
  t.match(await interrupted('import', 'shared', file), { code: 130, stderr: /^Whether the import is cancelled is unknown: .+ It is operation op-7 of shared\.\n$/s })
})

t.test('an interruption while the file is sent cuts it off', async t => {
  const svc = new FakeProcess()
  const seen: string[] = []
  const server = createServer(({ method, url }) => {
    seen.push(`${method} ${url}`)
    svc.send('SIGINT')
  }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close().closeAllConnections() })
  await once(server, 'listening')
  const file = join(t.testdir({ 'a.zip': '' }), 'a.zip')
  // more than the sockets between take
  await truncate(file, 256 * 1024 * 1024)
  const { code, stderr } = await svc.run('memory', 'import', 'shared', file, '--url', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.same({ code, stderr, seen }, { code: 130, stderr: '', seen: [`POST ${WIRE}/shared/transfer/import`] })
})

t.test('where the connection breaks while an import or export is followed, its operation is named', async t => {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return void request.socket.destroy()
    request.resume().once('end', () => say(response, 202, { operation_id: 'op-7', status: 'pending' }))
  }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close().closeAllConnections() })
  await once(server, 'listening')
  const file = join(t.testdir({ 'a.zip': 'PK' }), 'a.zip')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const [kind, ...args] of [['import', file], ['export', '-o', `${file}.new`]] as const) {
    const { code, stderr } = await new FakeProcess().run('memory', kind, 'shared', ...args, '--url', url)
    t.match({ code, stderr }, { code: 1, stderr: /^Error: GET .+: the connection was lost\n/ })
    t.match(stderr.replaceAll(/\s+/g, ' '), `The ${kind} may continue. It is operation op-7 of shared.`)
  }
})
