import t from 'tap'
import { core, definePlugin, type ConfigService } from '../../../../kernel/contract/index.js'
import { abilitiesOf } from '../../../../plugins/services/memory-engine/errands.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { memoryHost } from '../memory/host.js'
import { over } from './models-support.js'
import { noModels, openEngine } from './support.js'

const DAY_MS = 86_400_000

t.test('a model that does not answer within the limit costs a try, with a message that says so, and a new limit counts from the next question on', async t => {
  const ends = new Map<string, AbortSignal>()
  let chatTimeoutMs = DAY_MS
  const { call, engine, path } = openEngine(t, {
    abilities: () => ({ ...noModels, chat: { model: 'm', why: null }, chatTimeoutMs }),
    run: ({ body }, signal) => {
      const text = Buffer.from(body).toString()
      for (const bank of ['old', 'new', 'last', 'refreshed']) if (text.includes(`The ${bank} bank.`)) ends.set(bank, signal)
      return new Promise(() => {})
    }
  })
  const consolidating = async (bank: string): Promise<string> => {
    await call('POST', `${bank}/memories`, { items: [{ content: `The ${bank} bank.` }] })
    return (await call('POST', `${bank}/consolidate`, {})).body.operation_id
  }
  const old = await consolidating('old')
  while (!ends.has('old')) await call('GET', '/health')
  chatTimeoutMs = 50
  engine.abilitiesChanged()

  const why = 'the model m did not answer within 0.05 s: llm_timeout_s of [memory.graph]'
  const tried = await over(call, 'new', await consolidating('new'))
  t.match(tried, { status: 'pending', retry_count: 1, next_retry_at: String, error_message: why })
  t.match((await call('GET', 'new/llm-requests')).body, { items: [{ status: 'error', error: why }] })
  while (!ends.get('new')!.aborted) await call('GET', '/health')
  t.match(await call('POST', 'new/reflect', { query: 'What is of the bank?' }), { status: 503, headers: { 'retry-after': String }, body: { detail: why } })

  await call('POST', 'refreshed/memories', { items: [{ content: 'The refreshed bank.' }] })
  const { body: { operation_id: refresh } } = await call('POST', 'refreshed/mental-models', { id: 'mm', name: 'All', source_query: 'What is of the bank?' })
  t.match(await over(call, 'refreshed', refresh), { status: 'pending', retry_count: 1, error_message: why })

  const store = openStore(path)
  t.teardown(() => store.close())
  store.exec(`CREATE TRIGGER last_try AFTER INSERT ON operations WHEN NEW.bank_id = 'last' BEGIN UPDATE operations SET retry_count = 3 WHERE id = NEW.id; END`)
  t.match(await over(call, 'last', await consolidating('last')), { status: 'failed', error_message: why }, 'after the last try it is over')
  t.match((await call('GET', `old/operations/${old}`)).body, { status: 'processing' }, 'a question that was asked before has the limit of then')
  t.notOk(ends.get('old')!.aborted)
})

t.test('the limit of a model is llm_timeout_s as it is set now', async t => {
  let config: ConfigService | null = null
  const looks = definePlugin({
    name: 'looks', kind: 'service', apiVersion: 1, requires: { config: core.config },
    register: ({ services }) => { config = services.config }
  })
  const host = await memoryHost(t, { plugins: [looks] })
  const limit = (): number | undefined => abilitiesOf(config!.snapshot).chatTimeoutMs
  t.equal(limit(), 300_000)
  t.equal((await host.call('PUT', '/api/memory/graph', { llm_timeout_s: 45 })).status, 200)
  t.equal(limit(), 45_000)
})
