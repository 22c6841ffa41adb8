import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { shellWords } from '../../../kernel/contract/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { ggufFile } from '../../kernel/models/gguf-file.js'
import { FakeHub } from '../services/hub/fake-hub.js'
import { docsPage } from './docs-page.js'

interface Sent { readonly url: string, readonly init: RequestInit }

/** The request of a curl line, as curl would send it. */
function requestOf (line: string): Sent {
  const [curl, ...words] = shellWords(line.replaceAll('\\\n', ' '))
  if (curl !== 'curl') throw new Error(`no curl line: ${line}`)
  const headers: Record<string, string> = {}
  const form = new FormData()
  const fields = new URLSearchParams()
  let [url, method, body]: [string, string | null, string | FormData | URLSearchParams | null] = ['', null, null]
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === '-N') continue
    if (word === '-o') words.shift()
    else if (word === '-X') method = words.shift()!
    else if (word === '-d') body = words.shift()!
    else if (word === '-H') {
      const [name = '', value = ''] = words.shift()!.split(': ')
      headers[name] = value
    } else if (word === '-F') {
      const [name = '', value = ''] = words.shift()!.split('=')
      if (value.startsWith('@')) form.set(name, new Blob(['RIFF']), value.slice(1))
      else form.set(name, value)
      body = form
    } else if (word === '--data-urlencode') {
      const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(words.shift()!) ?? []
      fields.append(name, value)
      body = fields
    } else if (word.startsWith('http')) url = word
    else throw new Error(`curl does not know ${word} in: ${line}`)
  }
  return { url, init: { method: method ?? (body === null ? 'GET' : 'POST'), headers, ...(body === null ? {} : { body }) } }
}

/** A home with all that the examples name, so that each line meets what it is about. */
function furnished (folder: string, hub: string): Readonly<Record<string, string>> {
  const slots = { agent: 'llm', embed: 'embedding', npu: 'llm', rerank: 'reranking', tts: 'tts', stt: 'transcription' }
  const model = (id: string): string => `[models."${id}"]\npath = "${folder}/qwen3-4b.gguf"\n`
  return {
    'etc/svc/svc.toml': '[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n[plugins.config.tool-servers]\nregistry = "http://127.0.0.1:9"\n',
    'etc/svc/api.env': `HF_ENDPOINT=${hub}\nSVC_AVAHI_SERVICES_DIR=${folder}/avahi\n`,
    'etc/svc/upstreams.toml': '[[upstream]]\nname = "openai"\nurl = "http://127.0.0.1:9"\nauth_value_env = "OPENAI_API_KEY"\n',
    'var/lib/svc/registry/registry.toml': ['qwen3-4b', 'qwen3:0.6b'].map(model).join(''),
    ...Object.fromEntries(Object.entries(slots).map(([name, type]) =>
      [`etc/svc/slots/${name}.toml`, `type = "${type}"\nprovider = "fake"\ndevice = "${name === 'npu' ? 'npu' : 'cpu'}"\n[model]\ndefault = "qwen3-4b"\n`]))
  }
}

/** What is not there, or there already. These answers are about things, not about how they were asked for. */
const about: Readonly<Record<string, readonly [status: number, code: string | number]>> = {
  'GET /api/agent/approvals/0123456789abcdef0123456789abcdef': [404, 'approvals.not_found'],
  'POST /api/agent/approvals/0123456789abcdef0123456789abcdef/approve': [404, 'approvals.not_found'],
  'POST /api/agent/approvals/0123456789abcdef0123456789abcdef/deny': [404, 'approvals.not_found'],
  'GET /api/agent/approvals/0123456789abcdef0123456789abcdef/page': [404, 'approvals.not_found'],
  'POST /api/agent/approvals/0123456789abcdef0123456789abcdef/page': [404, 'approvals.not_found'],
  'POST /api/agents/install': [409, 'agent.cannot_install'],
  'GET /api/agents/pi': [404, 'agent.not_installed'],
  'GET /api/agents/pi/log': [404, 'agent.not_installed'],
  'POST /api/agents/pi/bootstrap': [404, 'agent.not_installed'],
  'POST /api/agents/pi/reprovision': [404, 'agent.not_installed'],
  'POST /api/agents/pi/restart': [404, 'agent.not_installed'],
  'POST /api/agents/pi/upgrade': [404, 'agent.not_installed'],
  'GET /api/agents/hermes/events': [426, 'request.upgrade_required'],
  'GET /api/agents/hermes/submit': [426, 'request.upgrade_required'],
  'GET /api/agents/hermes/session/handshake': [404, 'agent.not_installed'],
  'GET /api/agents/hermes/session/history': [404, 'agent.not_installed'],
  'POST /api/agents/hermes/session/create': [404, 'agent.not_installed'],
  'POST /api/agents/hermes/session/resume': [404, 'agent.not_installed'],
  'GET /api/board/events': [426, 'request.upgrade_required'],
  'GET /api/board/tasks/t_0123abcd': [404, 'board.task_not_found'],
  'PATCH /api/board/tasks/t_0123abcd': [404, 'board.task_not_found'],
  'DELETE /api/board/tasks/t_0123abcd': [404, 'board.task_not_found'],
  'POST /api/board/tasks/t_0123abcd/comments': [404, 'board.task_not_found'],
  'POST /api/board/tasks/t_0123abcd/reassign': [404, 'board.task_not_found'],
  'POST /api/board/tasks/t_0123abcd/reclaim': [404, 'board.task_not_found'],
  'PATCH /api/board/profiles/pi': [404, 'board.profile_not_found'],
  'POST /api/board/tasks/t_0123abcd/specify': [404, 'board.task_not_found'],
  'POST /api/board/tasks/t_0123abcd/decompose': [404, 'board.task_not_found'],
  'POST /api/board/tasks/t_0123abcd/undo': [404, 'board.task_not_found'],
  'GET /api/board/tasks/t_0123abcd/log': [404, 'board.task_not_found'],
  'GET /api/board/runs/r_0123456789abcdef': [404, 'board.run_not_found'],
  'POST /api/board/tasks/bulk': [404, 'board.task_not_found'],
  'POST /api/board/links': [404, 'board.task_not_found'],
  'DELETE /api/board/links': [404, 'board.task_not_found'],
  'DELETE /api/board/boards/default': [400, 'board.invalid_body'],
  'POST /api/mcp/catalog/refresh': [502, 'mcp.catalog_failed'],
  'PATCH /api/mcp/svc-admin/config': [409, 'mcp.bundled'],
  'PATCH /api/mcp/svc-admin/tools': [409, 'mcp.bundled'],
  'PATCH /api/mcp/svc-admin/exposure': [409, 'mcp.bundled'],
  'POST /api/mcp/svc-admin/test': [409, 'mcp.bundled'],
  'POST /api/mcp/svc-admin/restart': [409, 'mcp.bundled'],
  'POST /api/mcp/svc-admin/start': [409, 'mcp.bundled'],
  'POST /api/mcp/svc-admin/stop': [409, 'mcp.bundled'],
  'DELETE /api/mcp/svc-admin': [409, 'mcp.bundled'],
  'GET /mcp/admin': [405, -32000],
  'DELETE /mcp/admin': [400, -32000],
  'POST /api/blobs/sha256%3A29fdb92e57cf0827ded04ae6461b5931d01fa595843f55d36f5b275a52087dd2': [
    501, 'this gateway does not accept model files: download them with `svc model pull`, then use /api/create'
  ],
  'POST /api/push': [501, 'this gateway cannot push models: it has no registry'],
  // the engine here answers every request with words
  'POST /api/embed': [502, 'the engine answered with something that is not a list of embeddings'],
  'POST /api/embeddings': [502, 'the engine answered with something that is not a list of embeddings'],
  'GET /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.no_conversation'],
  'POST /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.no_conversation'],
  'DELETE /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.no_conversation'],
  'POST /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0/items': [404, 'responses.no_conversation'],
  'GET /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0/items': [404, 'responses.no_conversation'],
  'GET /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0/items/msg_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.no_conversation'],
  'DELETE /v1/conversations/conv_0f1e2d3c4b5a69788796a5b4c3d2e1f0/items/msg_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.no_conversation'],
  'GET /v1/responses/resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.not_found'],
  'DELETE /v1/responses/resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0': [404, 'responses.not_found'],
  'GET /v1/responses/resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0/input_items': [404, 'responses.not_found'],
  'POST /v1/responses/resp_0f1e2d3c4b5a69788796a5b4c3d2e1f0/cancel': [404, 'responses.not_found'],
  'POST /v1/realtime/calls': [501, 'realtime.no_calls'],
  'POST /v1/realtime/calls/rtc_1/accept': [501, 'realtime.no_calls'],
  'POST /v1/realtime/sessions': [501, 'realtime.no_beta_sessions'],
  'POST /v1/realtime/transcription_sessions': [501, 'realtime.no_beta_sessions'],
  'GET /v1/responses': [426, 'request.upgrade_required'],
  'GET /v1/realtime': [426, 'request.upgrade_required'],
  'POST /v1/images/generations': [404, 'model.not_loaded'],
  'GET /v1/files/file-0123456789abcdef01234567': [404, 'files.not_found'],
  'GET /v1/files/file-0123456789abcdef01234567/content': [404, 'files.not_found'],
  'DELETE /v1/files/file-0123456789abcdef01234567': [404, 'files.not_found'],
  'POST /v1/batches': [404, 'files.not_found'],
  'GET /v1/batches/batch_0123456789abcdef01234567': [404, 'batches.not_found'],
  'POST /v1/batches/batch_0123456789abcdef01234567/cancel': [404, 'batches.not_found'],
  'POST /v1/moderations': [422, 'moderations.not_a_guard'],
  'POST /v1/fim/completions': [404, 'dispatch.no_route'],
  'POST /infill': [404, 'dispatch.no_route'],
  'POST /v1/tokenize': [404, 'dispatch.no_route'],
  'POST /v1/detokenize': [404, 'dispatch.no_route'],
  'POST /v1/score': [502, 'dispatch.upstream_failed'],
  'POST /v2/rerank': [502, 'the reranker answered in an unknown format'],
  'POST /v1/images/edits': [404, 'model.not_loaded'],
  'POST /v1/images/variations': [404, 'model.not_loaded'],
  'POST /api/comfyui/pin': [404, 'gpu.img_slot_missing'],
  'POST /api/comfyui/restart': [404, 'gpu.img_slot_missing'],
  'POST /api/comfyui/switchover': [404, 'gpu.img_slot_missing'],
  'GET /api/comfyui/preview': [404, 'comfyui.no_output'],
  'POST /api/comfyui/workflows/portrait/launch': [404, 'comfyui.workflow_not_found'],
  'POST /api/comfyui/models/fetch': [404, 'hf.repo_not_found'],
  'GET /api/images/cache/00000000-0000-0000-0000-000000000000.png': [404, 'image.cache_miss'],
  'POST /api/install/services/svc-openwebui.service/repair': [400, 'install.pick_default_failed'],
  'POST /api/models': [409, 'model.already_exists'],
  'POST /api/models/add-from-path': [409, 'model.already_exists'],
  'POST /api/requests/req-1/cancel': [404, 'request.not_found'],
  'POST /api/services/openwebui/install': [409, 'services.cannot_install'],
  'POST /api/stacks/saber/apply': [409, 'stacks.would_break'],
  'GET /api/updates/check': [409, 'system.update_unconfigured'],
  'POST /api/updates/apply': [409, 'system.update_editable_install'],
  'POST /api/updates/rollback': [409, 'system.update_editable_install'],
  'GET /api/updates/status/0123456789ab': [404, 'system.update_job_not_found'],
  'POST /api/upstreams': [409, 'upstream.already_exists']
}

/** The code of an error, or its words where the API of the route knows no codes. */
function codeOf (text: string): unknown {
  const { error, message } = JSON.parse(text) as {
    readonly error?: string | { readonly code: string | number }
    readonly message?: string
  }
  return error === undefined ? message : typeof error === 'string' ? error : error.code
}

/** It is opted in to. */
const MEMORY_OFF = [503, 'memory.unavailable']

t.test('every curl line of the page does what it is for when it is pasted', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'svc-docs-'))
  await writeFile(join(folder, 'qwen3-4b.gguf'), ggufFile())
  const hub = await FakeHub.start(t)
  hub.add('Qwen/Qwen3-4B-GGUF', { files: { 'Qwen3-4B-Q4_K_M.gguf': ggufFile() } })
  const runtime = new FakeEngineRuntime()
  const gateway = await createTestGateway({ builtins, plugins: [createFakeProviderPlugin()], runtime, pluginConfig: { 'api-services': { downloads: false } }, deviceNodes: ['/dev/accel/accel0'], files: furnished(folder, hub.url) })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
    await rm(folder, { recursive: true })
  })
  const openapi = await (await gateway.fetch('/api/openapi.json')).json() as { readonly paths: Readonly<Record<string, object>> }
  const { curls } = await docsPage(openapi, `${gateway.baseUrl}/api/docs`)
  t.equal(curls.length, Object.values(openapi.paths).flatMap(methods => Object.keys(methods)).length, 'every operation has one')
  // what lies outside of this machine is not asked; what deletes comes last
  const sent = curls.map(line => ({
    line, ...requestOf(line.replaceAll('https://api.openai.com', 'http://127.0.0.1:9').replaceAll('192.168.1.10', '127.0.0.1').replaceAll('/srv/models', folder))
  })).sort((a, b) => Number(a.init.method === 'DELETE') - Number(b.init.method === 'DELETE'))
  const unseen = new Set(Object.keys(about))
  for (const { line, url, init } of sent) {
    const name = `${init.method} ${new URL(url).pathname}`
    const leave = new AbortController()
    const answer = await fetch(url, { ...init, redirect: 'manual', signal: leave.signal })
    const text = answer.headers.get('content-type')?.startsWith('text/event-stream') === true ? '' : await answer.text()
    leave.abort()
    unseen.delete(name)
    const expected = about[name] ?? (/ \/api\/memory\/(?!engine$)/.test(name) ? MEMORY_OFF : undefined)
    if (expected === undefined) t.ok(answer.status < 400, `${name} answers ${answer.status}`, { line, text: text.slice(0, 300) })
    else t.strictSame([answer.status, codeOf(text)], expected, name)
  }
  t.strictSame([...unseen], [], 'no exception without a line')
})

t.test('the docs page puts /v1 first, renders Markdown and filters its list by a search', async t => {
  const gateway = await createTestGateway({ builtins, runtime: new FakeEngineRuntime() })
  t.teardown(() => gateway.close())
  const openapi: unknown = await (await gateway.fetch('/api/openapi.json')).json()
  const page = await docsPage(openapi)

  t.match(page.groups()[0], 'Chat and text', 'what clients of models use comes first')
  const html = await (await gateway.fetch('/api/docs')).text()
  t.ok(html.indexOf('<main') < html.indexOf('<nav'), 'the routes come before the list of groups')
  t.match(html, /@media \(max-width: 50rem\) \{[^]*\.page \{ display: block \}/, 'and on a phone nothing puts it elsewhere')
  t.ok(page.text.indexOf('/v1/chat/completions') < page.text.indexOf('/api/activity'))
  t.notMatch(page.groups().join(), /api-|v1-/, 'groups have names for people')
  t.ok(page.texts('code').includes('stream: true'), 'Markdown in descriptions is shown as what it means')
  t.notMatch(page.texts('p').join(), '`')

  page.search('audio/transcriptions')
  t.strictSame(page.groups(), ['Audio (1)'], 'a search leaves the groups that have something')
  page.search('slots')
  t.match(page.groups().join(), /Slots \(\d\d\)/, 'the name of a group finds all of it')
  page.search('no such words')
  t.strictSame(page.groups(), [])
  page.search('')
  t.ok(page.groups().length > 20)

  const behind = await docsPage(openapi, 'https://box.lan/gateway/api/docs#group-Slots')
  t.ok(behind.curls.includes('curl \'https://box.lan/gateway/api/slots\''), 'lines name the address that the page came from')
})
