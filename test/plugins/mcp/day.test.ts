import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { spawnSvc } from '../../cli/support.js'
import { ggufFile } from '../../kernel/models/gguf-file.js'
import { FakeHub } from '../services/hub/fake-hub.js'

/** Engines that do not come up with a file of one folder, and say so in their log. */
class PickyRuntime extends FakeEngineRuntime {
  constructor () {
    super({ onStart: ({ spec }) => { if (JSON.stringify(spec.form).includes('broken-disk')) throw new Error('it ended at once') } })
  }

  override async* logs (): AsyncGenerator<string> {
    yield 'loading the model'
    yield 'error: the file ends in tensor 7'
  }
}

t.test('an agent\'s day: it finds the slot that fails, reads why, pulls a model that an operator approves, swaps and checks', async t => {
  const hub = await FakeHub.start(t)
  hub.add('Qwen/Qwen3-4B-GGUF', { files: { 'Qwen3-4B-Q4_K_M.gguf': ggufFile() } })
  const runtime = new PickyRuntime()
  const home = t.testdir()
  mkdirSync(join(home, 'broken-disk'))
  writeFileSync(join(home, 'broken-disk/cut.gguf'), ggufFile().subarray(0, 40))
  const slot = (model: string): string => `type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "${model}"\n`
  const gateway = await createTestGateway({
    builtins,
    plugins: [createFakeProviderPlugin()],
    runtime,
    home,
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n',
      'etc/svc/api.env': `HF_ENDPOINT=${hub.url}\n`,
      'etc/svc/slots/agent.toml': slot('fine'),
      'etc/svc/slots/coder.toml': slot('cut'),
      'var/lib/svc/registry/registry.toml': `[models.fine]\npath = "/dev/null"\n[models.cut]\npath = "${join(home, 'broken-disk/cut.gguf')}"\n`
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const chat = (model: string): Promise<Response> => gateway.fetch('/v1/chat/completions', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] })
  })
  t.equal((await chat('agent')).status, 200)
  t.equal((await chat('coder')).status, 502, 'what somebody complains about')

  const client = new Client({ name: 'Hermes', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.baseUrl}/mcp/admin`), { requestInit: { headers: { 'X-svc-Agent': 'hermes' } } }))
  t.teardown(() => client.close())
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> => {
    const { content } = await client.callTool({ name, arguments: args }) as { content: Array<{ text: string }> }
    return JSON.parse(content[0]!.text) as Record<string, unknown>
  }

  const { slots } = await call('slot_list') as { slots: Array<{ name: string, failure?: string }> }
  const failing = slots.filter(({ failure }) => failure !== undefined)
  t.strictSame(failing.map(({ name }) => name), ['coder'])
  const { failure } = await call('slot_status', { name: 'coder' }) as { failure: { log_tail: string[] } }
  t.match(failure, { code: 'slot.load_failed', message: /coder/ }, JSON.stringify(failure))
  t.strictSame(failure.log_tail.at(-1), 'error: the file ends in tensor 7')

  const args = { model_id: 'qwen3-4b', hf_repo: 'Qwen/Qwen3-4B-GGUF', hf_filename: 'Qwen3-4B-Q4_K_M.gguf' }
  const pending = await call('model_pull', args) as { status: string, approval_id: string }
  t.match(pending, { status: 'pending_approval', approval_id: /^[0-9a-f]{32}$/ })
  t.match(await call('approval_status', { approval_id: pending.approval_id }), { approval: { state: 'pending', tool: 'model_pull', args } })
  t.match(await call('model_pull_status', { model_id: 'qwen3-4b' }), { status: 'error', http_status: 404 }, 'nothing has begun')

  const terminal = await spawnSvc(['agent', 'approvals', 'approve', pending.approval_id.slice(0, 8), '--url', gateway.baseUrl]).finished
  t.match(terminal, { code: 0, stdout: 'model_pull ran for hermes.\n' }, terminal.stderr)
  t.match(await call('approval_status', { approval_id: pending.approval_id }), { approval: { state: 'executed', decided_by: 'cli' } })
  let pull: Record<string, unknown> = {}
  while (pull.state !== 'completed' && pull.state !== 'failed') pull = await call('model_pull_status', { model_id: 'qwen3-4b' })
  t.match(pull, { state: 'completed' })

  t.match(await call('model_swap', { name: 'coder', model_id: 'qwen3-4b' }), { state: 'ready', model: 'qwen3-4b' })
  const healed = await call('slot_status', { name: 'coder' })
  t.match(healed, { state: 'ready', model: 'qwen3-4b' })
  t.equal(healed.failure, undefined)
  t.equal((await chat('coder')).status, 200)

  const { records } = await (await gateway.fetch('/api/activity?kind=action&limit=1000')).json() as { records: Array<Record<string, string>> }
  const steps = [...records].reverse().map(({ actor, action, target, outcome }) => `${actor} ${action} ${target} ${outcome}`)
  const told = [
    'mcp:hermes mcp.tool.invoked admin/slot_list ok',
    'mcp:hermes mcp.tool.invoked admin/slot_status ok',
    'mcp:hermes mcp.tool.invoked admin/model_pull pending',
    'mcp:hermes model.pull qwen3-4b ok',
    'mcp:hermes mcp.tool.invoked admin/model_pull ok',
    `cli approval.approve ${pending.approval_id} ok`,
    'mcp:hermes slot.swap coder ok',
    'mcp:hermes mcp.tool.invoked admin/model_swap ok'
  ]
  let from = -1
  for (const step of told) {
    const at = steps.indexOf(step, from + 1)
    t.ok(at > from, step, { steps })
    from = Math.max(from, at)
  }
  t.strictSame(steps.filter(step => !step.startsWith('mcp:hermes') && !step.startsWith('cli ')), [], 'nothing under another name')
})

t.test('an agent cannot leave its file behind by the way it spells its name', async t => {
  const gateway = await createTestGateway({
    builtins,
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n',
      'etc/svc/agents/careful.toml': '[agent]\nname = "careful"\n[mcp.servers.svc-admin]\nbuiltin = true\n' +
        'tools = { allow = ["slot_list", "model_pull"], gated = ["slot_load"] }\n',
      'etc/svc/agents/anonymous.toml': '[agent]\nname = "anonymous"\n[mcp.servers.admin]\nbuiltin = true\ntools = { allow = ["version_info"] }\n'
    }
  })
  t.teardown(() => gateway.close())
  interface Answer { readonly result?: Record<string, unknown>, readonly error?: { readonly message: string } }
  const ask = async (agent: string | string[], method: string, params: object = {}): Promise<Answer> => {
    const request = httpRequest(`${gateway.baseUrl}/mcp/admin`, {
      method: 'POST', headers: { 'content-type': 'application/json', 'accept': 'application/json', 'x-svc-agent': agent }
    })
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    const [response] = await once(request, 'response') as [AsyncIterable<Buffer>]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    return JSON.parse(Buffer.concat(chunks).toString()) as Answer
  }
  const rpc = async (...of: Parameters<typeof ask>): Promise<Record<string, unknown>> => (await ask(...of)).result!
  const sees = async (agent: string | string[]): Promise<readonly string[]> =>
    ((await rpc(agent, 'tools/list')).tools as Array<{ name: string }>).map(({ name }) => name)
  for (const name of ['careful', 'CAREFUL', 'Careful', '  careful\t']) t.strictSame(await sees(name), ['model_pull', 'slot_list', 'slot_load'], JSON.stringify(name))
  for (const name of ['', ['careful', 'careful'], ['careful', 'root'], '../agents/careful', 'careful.toml', 'careful/', 'anonymous', 'Anonymous', 'x'.repeat(65)]) {
    t.strictSame(await sees(name), ['version_info'], JSON.stringify(name))
  }
  t.ok((await sees('somebody')).length > 50, 'one without a file has the server\'s own catalogue')
  const call = async (name: string, args: object = {}): Promise<string> => {
    const { content } = await rpc('careful', 'tools/call', { name, arguments: args }) as { content: Array<{ text: string }> }
    return content[0]!.text
  }
  t.match(await call('slot_delete', { name: 'agent' }), /mcp\.tool_not_allowed/)
  t.match(await call('approval_status', { approval_id: 'x' }), /mcp\.tool_not_allowed/)
  t.match(await call('slot_load', { name: 'agent' }), /pending_approval/, 'gated by the file alone')
  t.match(await call('model_pull', { model_id: 'm' }), /pending_approval/, 'what the file allows is gated all the same')
  t.match(await call('slot_list'), /"slots"/)
  const read = (agent: string, uri: string): Promise<Answer> => ask(agent, 'resources/read', { uri })
  for (const uri of ['svc://status', 'svc://activity']) {
    t.match(await read('careful', uri), { error: { message: /agent 'careful' may not call/ } }, `what reads ${uri} is not in its file`)
  }
  t.match(await read('anonymous', 'svc://status'), { result: { contents: [{ uri: 'svc://status' }] } })
})
