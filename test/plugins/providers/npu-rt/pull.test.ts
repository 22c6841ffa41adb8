import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import models from '../../../../plugins/api/models/index.js'
import npu from '../../../../plugins/api/npu/index.js'
import hub from '../../../../plugins/services/hub/index.js'
import library from '../../../../plugins/services/library/index.js'
import pull from '../../../../plugins/services/pull/index.js'
import { run } from '../../../cli/support.js'
import { npuGateway, type NpuGateway, type NpuGatewayOptions } from './npu-gateway.js'

t.setTimeout(300_000)

const TAG = 'llama3.2:1b'
const STORE = 'var/lib/svc/models/flm/models'
const FOLDER = `${STORE}/Llama-3.2-1B-NPU2`

function gatewayFor (t: Test, options: NpuGatewayOptions = {}): Promise<NpuGateway> {
  return npuGateway(t, { plugins: [models, npu, hub, library, pull], anchor: '', ...options })
}

async function newHome (t: Test): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'svc-npu-pull-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  return home
}

/** Snapshots of the stream, up to the first that is as asked for or the last. */
async function until (gateway: NpuGateway, id: string, isIt: (snapshot: Snapshot) => boolean = () => false): Promise<Snapshot> {
  const response = await gateway.fetch(`/api/models/${id}/pull/stream`)
  const reader = response.body!.getReader()
  let text = ''
  let last: Snapshot | null = null
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    text += Buffer.from(chunk.value).toString()
    const frames = text.split('\n\n')
    text = frames.pop()!
    for (const frame of frames.filter(each => each.startsWith('data: '))) {
      last = JSON.parse(frame.slice('data: '.length)) as Snapshot
      if (!isIt(last)) continue
      await reader.cancel()
      return last
    }
  }
  return last!
}

interface Snapshot {
  readonly state: string
  readonly bytes_downloaded: number
  readonly message: string
  readonly error: string | null
  readonly files: ReadonlyArray<{ readonly hf_filename: string, readonly bytes_done: number }>
}

/** Engines and tasks of the process driver that are there, running or not. */
async function programs ({ home }: NpuGateway): Promise<string[]> {
  return await readdir(join(home, 'var/lib/svc/runtime')).catch(() => [])
}

interface PullEvent { readonly type: string, readonly data: Readonly<Record<string, unknown>> }

function pullEvents (gateway: NpuGateway): readonly PullEvent[] {
  return gateway.gateway.kernel().events.list({ type: 'pull.*', limit: 100 }).events
}

const stalled = ({ bytes_downloaded: done }: Snapshot): boolean => done >= 900_000

t.test('a tag is pulled by the engine\'s own program', async t => {
  const gateway = await gatewayFor(t)
  const { call, home } = gateway
  t.same((await call('GET', '/api/models')).json.models, [], 'what is not fetched is not listed')
  gateway.order('stall-at model.q4nx 900000')
  const { status, json } = await call('POST', `/api/models/${TAG}/pull`)
  t.equal(status, 202)
  t.match(json, { id: /^[0-9a-f]{16}$/, model_id: TAG, source: 'flm', bytes_total: 1_000_000_000 })
  t.notOk('hf_repo' in json)
  const half = await until(gateway, TAG, stalled)
  t.match(half, { state: 'running', source: 'flm', hf_repo: /^$/, error: null, files: [{ hf_filename: 'config.json' }, { hf_filename: 'model.q4nx', dest: join(home, FOLDER, 'model.q4nx') }] })
  t.ok(Math.abs((half as unknown as { bytes_total: number }).bytes_total - 2_301_900) < 30_000, 'what the program says, not what the table says')
  t.match(await call('POST', '/api/models/Llama3.2-1B-FLM/pull'), { status: 202, json: { id: json.id, model_id: TAG, source: 'flm', resumed: true } }, 'one job, however it is spelled')
  t.match(await call('POST', `/api/models/${TAG}/pull`, { hf_repo: 'a/b' }), { status: 409, json: { error: { code: 'model.pull_conflict' } } })
  gateway.order('')
  t.match(await until(gateway, `${TAG}-FLM`), { id: json.id, model_id: TAG, state: 'completed', path: join(home, FOLDER), error: null })
  t.equal((await stat(join(home, FOLDER, 'model.q4nx'))).size, 2_000_000)
  t.same(await programs(gateway), [], 'nothing of the program stays')
  t.match((await call('GET', `/api/models/${TAG}-FLM/pull/status`)).json, { state: 'completed' })
  t.match((await call('GET', '/api/models/pulls')).json, { pulls: [{ model_id: TAG, source: 'flm' }] })
  const row = {
    id: `${TAG}-FLM`, name: TAG, owned_by: 'flm', upstream: 'npu', backend: 'flm', installed: true, type: 'llm', capability: 'chat', capabilities: ['chat'], device: 'npu'
  }
  t.match((await call('GET', '/api/models')).json, { models: [row], count: 1 })
  for (const id of [TAG, `${TAG}-FLM`, 'llama3.2-1b']) t.match((await call('GET', `/api/models/${id}`)).json, row, id)
  t.match((await call('GET', '/api/slots/flm/models')).json.models.filter(({ installed }: { installed: boolean }) => installed), [{ model: TAG }])
  const events = pullEvents(gateway)
  t.match(events[0], { type: 'pull.queued', source: `pull:${TAG}`, data: { model_id: TAG, source: 'flm', total: 1_000_000_000 } })
  t.ok(events.some(({ type, data }) => type === 'pull.progress' && Number(data.pct) > 0))
  t.match(events.at(-1), { type: 'pull.completed', data: { model_id: TAG, path: join(home, FOLDER) } })
  await call('POST', `/api/models/${TAG}/pull`)
  t.match(await until(gateway, TAG), { state: 'completed' }, 'what is there is not fetched again')
  const audit = gateway.gateway.kernel().activity.list({ action: 'model.pull', limit: 10 }) as unknown as { rows?: unknown }
  t.match(JSON.stringify(audit), '"source":"flm"')
})

t.test('a slot lists its model before it is there', async t => {
  const gateway = await gatewayFor(t, { anchor: 'device = "npu"\n[model]\ndefault = "gemma3:1b"\n[npu]\nasr = true\n' })
  const rows = async (): Promise<unknown> => (await gateway.call('GET', '/api/models')).json.models
  t.match(await rows(), [{ id: 'gemma3:1b-FLM', installed: false, type: 'llm' }, { id: 'whisper-v3:turbo-FLM', installed: false, type: 'transcription', capability: 'asr' }])
  await gateway.call('POST', '/api/models/whisper-v3:turbo/pull')
  await until(gateway, 'whisper-v3:turbo')
  t.match(await rows(), [{ id: 'whisper-v3:turbo-FLM', installed: true, type: 'transcription' }, { id: 'gemma3:1b-FLM', installed: false }])
})

t.test('cancelled: the program ends and what it had goes', async t => {
  const gateway = await gatewayFor(t)
  gateway.order('stall-at model.q4nx 900000')
  await gateway.call('POST', `/api/models/${TAG}/pull`)
  await until(gateway, TAG, stalled)
  t.equal((await programs(gateway)).length, 1)
  const cancelled = await gateway.call('POST', `/api/models/${TAG}-FLM/pull/cancel`)
  t.match(cancelled, { status: 200, json: { model_id: TAG, state: 'cancelled', bytes_downloaded: 0 } })
  t.same(await programs(gateway), [])
  t.same(await readdir(join(gateway.home, FOLDER)), [])
  t.match(await gateway.call('POST', `/api/models/${TAG}/pull/cancel`), { status: 200, json: { state: 'cancelled' } }, 'twice is once')
  t.match(pullEvents(gateway).at(-1), { type: 'pull.cancelled', data: { model_id: TAG } })
  gateway.order('')
  await gateway.call('POST', `/api/models/${TAG}/pull`)
  t.match(await until(gateway, TAG), { state: 'completed' })
})

t.test('a gateway that stops takes the program along, and the next one goes on', async t => {
  const home = await newHome(t)
  const first = await gatewayFor(t, { home })
  first.order('stall-at model.q4nx 900000')
  const { id } = (await first.call('POST', `/api/models/${TAG}/pull`)).json
  await until(first, TAG, stalled)
  await first.close()
  t.same(await programs(first), [])
  const left = (await stat(join(home, FOLDER, 'model.q4nx'))).size
  t.ok(left >= 900_000, 'what is there is kept')
  const second = await gatewayFor(t, { home })
  t.match(await until(second, TAG), { id, state: 'completed' }, 'the same job')
  const [queued] = pullEvents(second)
  t.equal(queued?.type, 'pull.queued')
  const counted = Number(queued?.data.downloaded)
  t.ok(counted >= 850_000 && counted <= left + 10_000, `and counted: ${counted}`)
  t.equal((await stat(join(home, FOLDER, 'model.q4nx'))).size, 2_000_000)
})

t.test('or leaves it interrupted, when it was told to', async t => {
  const home = await newHome(t)
  const first = await gatewayFor(t, { home })
  first.order('stall-at model.q4nx 900000')
  await first.call('POST', `/api/models/${TAG}/pull`)
  await until(first, TAG, stalled)
  await first.close()
  const second = await gatewayFor(t, { home, pluginConfig: { pull: { resume_on_start: false } } })
  t.match((await second.call('GET', `/api/models/${TAG}/pull/status`)).json, { state: 'failed', error_code: 'pull.interrupted' })
  await second.call('POST', `/api/models/${TAG}/pull`)
  t.match(await until(second, TAG), { state: 'completed' })
})

t.test('a last file that was left short is not taken for a whole one', async t => {
  const home = await newHome(t)
  const first = await gatewayFor(t, { home })
  const short = join(home, STORE, 'Gemma3-4B-NPU2/vision_weight.q4nx')
  first.order('stall-at vision_weight.q4nx 200000')
  await first.call('POST', '/api/models/gemma3:4b/pull')
  await until(first, 'gemma3:4b', ({ files }) => files.some(({ hf_filename: name, bytes_done: done }) => name === 'vision_weight.q4nx' && done >= 190_000))
  await first.close()
  t.ok((await stat(short)).size < 500_000)
  const second = await gatewayFor(t, { home })
  t.match(await until(second, 'gemma3:4b'), { state: 'completed' })
  t.equal((await stat(short)).size, 500_000)
})

t.test('pulls that fail say why, in the engine\'s words', async t => {
  const gateway = await gatewayFor(t)
  const failed = async (tag: string, orders = ''): Promise<Snapshot> => {
    gateway.order(orders)
    t.equal((await gateway.call('POST', `/api/models/${tag}/pull`)).status, 202, tag)
    return await until(gateway, tag)
  }
  const is = (error: RegExp): object => ({ state: 'failed', error_code: 'model.pull_failed', error })
  t.match(await failed('tomorrow:7b'), is(/FastFlowLM could not fetch 'tomorrow:7b': Model not found: tomorrow:7b/))
  t.match(await failed(TAG, 'offline'), is(/Error building download list/), 'the program ends with 0 then')
  t.match(await failed(TAG, 'break'), is(/Failure when receiving data from the peer/))
  t.match(await failed(TAG, 'corrupt'), is(/its hash differs/))
  t.match(pullEvents(gateway).at(-1), { type: 'pull.failed', severity: 'error', data: { model_id: TAG, error_code: 'model.pull_failed' } })
  gateway.order('stall-at model.q4nx 900000')
  await gateway.call('POST', `/api/models/${TAG}/pull`)
  await until(gateway, TAG, stalled)
  const [program] = await programs(gateway)
  const { runtime } = gateway.gateway.kernel()
  await runtime.stop(program!, 0)
  t.match(await until(gateway, TAG), is(/it ended with code 1(37|43)/), 'killed by somebody else')
  t.same(await programs(gateway), [])
})

t.test('what cannot be pulled here is refused at once', async t => {
  const bare = await gatewayFor(t, { env: { PATH: '/nowhere' } })
  t.match(await bare.call('POST', `/api/models/${TAG}/pull`), { status: 503, json: { error: { code: 'runtime.unavailable', message: /no container engine is in use, and flm is not installed; start Docker or Podman, or install flm/ } } })
  t.match(await bare.call('GET', `/api/models/${TAG}/pull/status`), { status: 404, json: { error: { code: 'model.pull_job_not_found' } } })
  t.match(await bare.call('POST', '/api/models/nobody/pull'), { status: 422, json: { error: { code: 'model.invalid_source' } } })
  t.notOk(existsSync(join(bare.home, STORE)), 'and leaves nothing')
  const without = await gatewayFor(t, { deviceNodes: [] })
  t.match(await without.call('POST', `/api/models/${TAG}/pull`), {
    status: 422, json: { error: { code: 'model.invalid_source', message: /a model for FastFlowLM, which cannot run here: device npu is missing/ } }
  })
})

t.test('the command line: lines for a log, JSON for scripts', async t => {
  const gateway = await gatewayFor(t)
  const url = gateway.baseUrl
  const first = await run(['model', 'pull', TAG, '--url', url])
  t.equal(first.code, 0, first.stderr)
  t.match(first.stdout, /^llama3\.2:1b is complete: \/\S+\/Llama-3\.2-1B-NPU2, 2\.3 MB\n$/)
  t.match(first.stderr, /^Pulling: llama3\.2:1b by flm, 1\.0 GB\nllama3\.2:1b: \d+ %, /)
  const json = JSON.parse((await run(['model', 'pull', 'gemma3-1b-FLM', '--json', '--url', url])).stdout) as object
  t.match(json, { model_id: 'gemma3:1b', state: 'completed', source: 'flm' })
  t.match(await run(['model', 'pull', 'tomorrow:7b', '--url', url]), { code: 1, stdout: /^$/, stderr: /the pull of 'tomorrow:7b' failed: .*Model not found.*model\.pull_failed/ })
  t.match((await run(['model', 'list', '--url', url])).stdout, /^llama3\.2:1b-FLM +llama3\.2:1b +llm /m)
})
