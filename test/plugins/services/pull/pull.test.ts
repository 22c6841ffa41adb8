import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ggufFile, number, text } from '../../../kernel/models/gguf-file.js'
import { patternBytes, sha256Of } from '../hub/fake-hub.js'
import { content, pullGateway } from './support.js'

const model = ggufFile({
  architecture: 'qwen3', weights: 200_000, keys: { 'qwen3.context_length': number(40_960), 'tokenizer.chat_template': text('{{ tools }}') }
})

t.test('a model from its repository to its row', async t => {
  const gateway = await pullGateway(t)
  const { hub } = gateway
  hub.add('org/m-GGUF', { license: 'apache-2.0', files: { 'm-Q4_K_M.gguf': model, 'README.md': 'x' } })
  const started = await gateway.call('POST', '/api/models/mine/pull', { hf_repo: 'org/m-GGUF', hf_filename: 'm-Q4_K_M.gguf' })
  t.equal(started.status, 202)
  t.match(started.json, {
    id: /^[0-9a-f]{16}$/, model_id: 'mine', state: /queued|running/, hf_repo: 'org/m-GGUF', hf_file: 'm-Q4_K_M.gguf', revision: /^[0-9a-f]{40}$/,
    bytes_total: model.length
  })
  const path = join(gateway.store, 'mine/m-Q4_K_M.gguf')
  const sha256 = sha256Of(model)
  const over = await gateway.over('mine')
  t.match(over, {
    id: started.json.id, state: 'completed', bytes_downloaded: model.length, bytes_total: model.length, error: null, error_code: null, sha256, path, message: /^$/,
    files: [{ hf_filename: 'm-Q4_K_M.gguf', kind: 'model', dest: path, bytes_done: model.length, sha256, expected_sha256: sha256 }]
  })
  t.ok(over.finished_at >= over.started_at)
  t.ok(model.equals(await content(gateway, 'mine/m-Q4_K_M.gguf')))
  t.same(await gateway.files(), ['mine/m-Q4_K_M.gguf'], 'nothing else is left')
  t.equal((await stat(path)).mode & 0o777, 0o644)
  t.same((await gateway.call('GET', '/api/models/mine/pull/status')).json, over, 'the row of the job says the same')
  t.match((await gateway.call('GET', '/api/models/mine')).json, {
    id: 'mine', path, size_bytes: model.length, quant: 'Q4_K_M', license: 'apache-2.0', hf_repo: 'org/m-GGUF', hf_filename: 'm-Q4_K_M.gguf',
    capabilities: ['chat'], tags: ['user-added', 'tool-calling'],
    metadata: { source: 'add-by-hf', context_length: 40_960, architecture: 'qwen3', sha256, revision: started.json.revision }
  })
  const events = gateway.pullEvents()
  t.equal(events[0]?.type, 'pull.queued')
  t.match(events[0]?.data, { model_id: 'mine', hf_repo: 'org/m-GGUF', hf_file: 'm-Q4_K_M.gguf', total: model.length, downloaded: 0 })
  t.match(events.at(-1), { type: 'pull.completed', data: { model_id: 'mine', downloaded: model.length, total: model.length, sha256, path } })
  const progress = events.filter(({ type }) => type === 'pull.progress')
  t.ok(progress.length > 0 && progress.length <= 10)
  for (const { data } of progress) t.match(data, { model_id: 'mine', downloaded: Number, total: model.length, pct: Number, speed_bps: Number })
  t.equal(hub.servedInTotal, model.length, 'every byte once')
  t.same(hub.complaints, [])

  t.equal((await gateway.call('POST', '/api/models/mine/pull')).status, 202, 'again, from the row')
  t.match(await gateway.over('mine'), { state: 'completed', sha256 })
  t.equal(hub.servedInTotal, model.length, 'what is there and right is not pulled again')
  t.match((await gateway.call('GET', '/api/models/pulls')).json.pulls, [{ model_id: 'mine', state: 'completed' }])
  const damaged = Buffer.from(model)
  damaged[1000] = damaged[1000]! ^ 1
  await writeFile(path, damaged)
  await gateway.call('PUT', '/api/models/mine', { name: 'My own name', defaults: { context_size: 8192 } })
  await gateway.call('POST', '/api/models/mine/pull')
  t.match(await gateway.over('mine'), { state: 'completed' })
  t.ok(model.equals(await content(gateway, 'mine/m-Q4_K_M.gguf')), 'a damaged file is mended')
  t.match((await gateway.call('GET', '/api/models/mine')).json, { name: 'My own name', defaults: { context_size: 8192 } }, 'what an operator wrote stays')
  t.match(gateway.gateway.kernel().activity.list({ category: 'model' }).find(row => row.action === 'model.pull'), { target: 'mine', outcome: 'ok' })
})

t.test('a split model with its projector, in the layout of the catalogue, files side by side', async t => {
  const gateway = await pullGateway(t, { config: { parallel_files: 2 } })
  const { hub } = gateway
  const parts = ['00001', '00002', '00003'].map((part, i) => [`BF16/big-BF16-${part}-of-00003.gguf`, ggufFile({ weights: 100_000 + i * 4 })] as const)
  const projector = ggufFile({ architecture: 'clip', weights: 4000 })
  hub.add('org/big-GGUF', { files: { ...Object.fromEntries(parts), 'mmproj-BF16.gguf': ggufFile(), 'mmproj-F16.gguf': projector, 'small-Q4_0.gguf': model } })
  const started = await gateway.call('POST', '/api/models/org%2Fbig/pull', {
    hf_repo: 'org/big-GGUF', hf_file: parts[0]![0], capability: 'llm', labels: ['chat', 'vision']
  })
  t.equal(started.status, 202)
  t.match(await gateway.over('org/big'), { state: 'completed', files: [{}, {}, {}, { kind: 'mmproj', hf_filename: 'mmproj-F16.gguf' }] })
  const files = await gateway.files()
  const folder = files[0]!.split('/').slice(0, 2).join('/')
  t.match(folder, /^chat\/org-big-[0-9a-f]{8}$/)
  t.same(files, ['meta.json', 'mmproj.gguf', 'model-00001-of-00003.gguf', 'model-00002-of-00003.gguf', 'model-00003-of-00003.gguf'].map(name => `${folder}/${name}`))
  for (const [i, [, bytes]] of parts.entries()) t.ok(bytes.equals(await content(gateway, files[i + 2]!)))
  t.match(JSON.parse((await content(gateway, files[0]!)).toString()), {
    model_id: 'org/big', hf_repo: 'org/big-GGUF', hf_file: parts[0]![0], sha256: sha256Of(parts[0]![1]), capability: 'chat'
  })
  t.match((await gateway.call('GET', '/api/models/org%2Fbig')).json, {
    size_bytes: parts.reduce((sum, [, bytes]) => sum + bytes.length, 0), capabilities: ['chat', 'vision'], mmproj: join(gateway.store, files[1]!)
  })
  t.equal(hub.servedInTotal, parts.reduce((sum, [, bytes]) => sum + bytes.length, projector.length))
})

t.test('names of the hub as ids, quants, and what is no source', async t => {
  const gateway = await pullGateway(t)
  const { hub } = gateway
  hub.add('org/many-GGUF', { files: { 'x-Q8_0.gguf': patternBytes(3000), 'x-Q4_K_M.gguf': model, 'x-UD-Q4_K_XL.gguf': patternBytes(2000) } })
  hub.add('org/odd', { files: { 'a.gguf': patternBytes(3000), 'b.gguf': patternBytes(3000) } })
  hub.add('org/none', { files: { 'config.json': '{}' } })
  hub.add('org/torn', { files: { 't-00001-of-00002.gguf': patternBytes(3000) } })
  const pull = (id: string, body: object = {}) => gateway.call('POST', `/api/models/${encodeURIComponent(id)}/pull`, body)
  t.match((await pull('org/many-GGUF')).json, { hf_file: 'x-Q4_K_M.gguf' }, 'the usual quant')
  t.match((await pull('org/many-GGUF:q8_0')).json, { hf_file: 'x-Q8_0.gguf' })
  t.match(await gateway.over('org/many-GGUF'), { state: 'completed' })
  t.match(await gateway.over('org/many-GGUF:q8_0'), { state: 'completed' })
  t.equal((await gateway.files()).length, 2, 'each in a folder of its own')
  for (const [id, body, status, code, message] of [
    ['nobody', {}, 422, 'model.invalid_source', /catalogue/],
    ['gemma:1b', {}, 422, 'model.invalid_source', /no source is known/],
    ['org/many-GGUF:Q2_K', {}, 422, 'model.invalid_source', /no Q2_K.*x-Q8_0\.gguf/],
    ['org/odd', {}, 422, 'model.invalid_source', /more than one model.*a\.gguf, b\.gguf/],
    ['org/none', {}, 422, 'model.invalid_source', /no GGUF/],
    ['x', { hf_repo: 'org/torn' }, 404, 'hf.file_not_found', /t-00002-of-00002\.gguf/],
    ['x', { hf_repo: 'org/odd', hf_filename: '../../etc/passwd' }, 404, 'hf.file_not_found', /no file/],
    ['x', { hf_repo: '../../x' }, 400, 'hf.bad_request', /owner\/name/],
    ['x', { hf_repo: 'org/nobody' }, 404, 'hf.repo_not_found', /check its name/],
    ['x', { hf_repo: 'org/odd', hf_filename: 'a.gguf', revision: 'v9' }, 404, 'hf.file_not_found', /revision/],
    ['x', { hf_repo: 'org/odd', labels: ['fly'] }, 400, 'validation.invalid', /labels/],
    ['x', { hf_repo: 'org/odd', colour: 'red' }, 400, 'validation.unknown_keys', /colour/]
  ] as const) t.match(await pull(id, body), { status, json: { error: { code, message } } }, `${id} ${JSON.stringify(body)}`)
  for (const path of ['nobody/pull/status', 'nobody/pull/stream']) {
    t.match(await gateway.call('GET', `/api/models/${path}`), { status: 404, json: { error: { code: 'model.pull_job_not_found' } } })
  }
  t.equal((await gateway.call('POST', '/api/models/nobody/pull/cancel')).status, 404)
  t.notOk((await gateway.call('GET', '/api/models')).json.models.some(({ id }: { id: string }) => id === 'x'), 'a refusal leaves no row')
})

t.test('who may have it: gated, private, tokens', async t => {
  const gateway = await pullGateway(t)
  const { hub } = gateway
  hub.add('org/gated', { gated: 'manual', files: { 'g.gguf': model } })
  const pull = () => gateway.call('POST', '/api/models/g/pull', { hf_repo: 'org/gated' })
  t.match(await pull(), { status: 403, json: { error: { code: 'hf.gated', details: { license_page: `${hub.url}/org/gated` }, message: /HF_TOKEN/ } } })
  const { config } = gateway.gateway.kernel()
  await config.setSecret('HF_TOKEN', 'hf_wrong')
  t.match(await pull(), { status: 403, json: { error: { code: 'hf.token_rejected' } } })
  await config.setSecret('HF_TOKEN', 'hf_good')
  t.equal((await pull()).status, 202, 'a token that was just set counts at once')
  const over = await gateway.over('g')
  t.match(over, { state: 'completed' })
  t.ok(hub.requests('cdn', '/').length > 0 && hub.requests('cdn', '/').every(({ headers }) => headers.authorization === undefined))
  const { activity, events, jobs } = gateway.gateway.kernel()
  const kept = [events.list({ limit: 1000 }), activity.list({ limit: 1000 }), jobs.list({ kind: 'model-pull' })]
  const told = JSON.stringify([over, gateway.logs, kept])
  for (const secret of ['hf_good', 'hf_wrong', 'X-Amz-Signature']) t.notOk(told.includes(secret), `${secret} is told nowhere`)
})

t.test('one job a model, two at a time, the others wait', async t => {
  const gateway = await pullGateway(t)
  const { hub } = gateway
  for (const name of ['a', 'b', 'c']) hub.add(`org/${name}`, { files: { [`${name}.gguf`]: ggufFile({ weights: 400_000 }), [`other-${name}.gguf`]: model } })
  hub.pace = { chunk: 16_384, ms: 2 }
  const pull = (name: string, body: object = {}) => gateway.call('POST', `/api/models/${name}/pull`, { hf_repo: `org/${name}`, hf_filename: `${name}.gguf`, ...body })
  const [one, two] = await Promise.all([pull('a'), pull('a')])
  t.equal(one.json.id, two.json.id)
  t.same([one.json.resumed, two.json.resumed].filter(value => value === true).length, 1, 'one of them joined')
  t.match((await gateway.call('POST', '/api/models/a/pull')).json, { id: one.json.id, resumed: true })
  t.match(await pull('a', { hf_filename: 'other-a.gguf' }), { status: 409, json: { error: { code: 'model.pull_conflict' } } })
  await pull('b')
  await pull('c')
  const state = async (name: string) => (await gateway.call('GET', `/api/models/${name}/pull/status`)).json.state
  t.equal(await state('c'), 'queued')
  t.match((await gateway.call('GET', '/api/models/pulls')).json.pulls.length, 3)
  const { health } = gateway.gateway.report().find(({ name }) => name === 'pull')!
  t.match(health, { running: 3, bytes_to_go: Number })
  hub.pace = { chunk: 65_536, ms: 0 }
  for (const name of ['a', 'b', 'c']) t.match(await gateway.over(name), { state: 'completed' })
  t.equal(hub.servedInTotal, 3 * ggufFile({ weights: 400_000 }).length)
})

t.test('cancelling: the parts go, a model that is there stays', async t => {
  const gateway = await pullGateway(t)
  const { hub } = gateway
  const big = ggufFile({ weights: 2_000_000 })
  hub.add('org/big', { files: { 'big.gguf': big } })
  hub.fail('cdn', 'big.gguf', { kind: 'stall', after: 500_000 }, 99)
  const start = () => gateway.call('POST', '/api/models/big/pull', { hf_repo: 'org/big' })
  await start()
  await gateway.received('big', 400_000)
  const stream = await gateway.fetch('/api/models/big/pull/stream')
  const reader = stream.body!.getReader()
  await reader.read()
  t.same((await gateway.files()).filter(name => name.endsWith('.part')).length, 1)
  const cancelled = await gateway.call('POST', '/api/models/big/pull/cancel')
  t.match(cancelled.json, { state: 'cancelled', finished_at: Number, error: null, path: null })
  let last = ''
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) last = Buffer.from(chunk.value).toString()
  t.match(last, /"state":"cancelled"/, 'who watches is told, and the stream ends')
  t.same(await gateway.files(), [])
  t.match((await gateway.call('POST', '/api/models/big/pull/cancel')).json, { state: 'cancelled', id: cancelled.json.id }, 'idempotent')
  t.equal(gateway.pullEvents().at(-1)?.type, 'pull.cancelled')
  t.equal((await gateway.call('GET', '/api/models/big')).status, 404)

  await start()
  await hub.reaches('big.gguf', 900_000)
  const deleted = await gateway.call('POST', '/api/models', { id: 'big', path: '/usr' })
  t.equal(deleted.status, 201)
  await gateway.call('DELETE', '/api/models/big')
  t.match((await gateway.call('GET', '/api/models/big/pull/status')).json, { state: 'cancelled' }, 'a model that is forgotten is not brought back')
  t.same(await readFile(join(gateway.home, 'var/lib/svc/registry/registry.toml'), 'utf8').then(toml => toml.includes('big')), false)
})
