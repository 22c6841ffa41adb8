import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { z } from 'zod'
import { svcSchema } from '../../../../cli/offline/svc-schema.js'
import { checkShape } from '../../../../kernel/config/check/shape-check.js'
import { noProviders } from '../../../../kernel/config/parts/laid-providers.js'
import { checkSlotFile } from '../../../../kernel/config/schema/slot-file.js'
import { patchedSlot } from '../../../../kernel/config/write/slot-writer.js'
import { mergeTables } from '../../../../kernel/config/write/svc-writer.js'
import { parseToml, type Table } from '../../../../kernel/config/toml/toml-file.js'
import { patchToml } from '../../../../kernel/config/toml/toml-patch.js'
import {
  externalProviderSchema, isSvcError, modelRowSchema, slotConfigSchema, upstreamSchema
} from '../../../../kernel/contract/index.js'
import fc from '../../../property.js'
import text from '../../../../plugins/v1/text/index.js'
import { apiOf, apiPlugins, refused, type Api } from '../support.js'

const api = apiOf(
  'api-chat-templates', 'api-models', 'api-settings', 'api-slots', 'api-status', 'hub', 'library', 'memory', 'memory-engine', 'pull'
)

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly anyOf?: readonly Schema[]
  readonly readOnly?: boolean
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly maximum?: number
}

type Leaf = readonly [path: readonly string[], schema: Schema]

/** Every key that has a place of its own, with what its schema says. */
function leaves (schema: Schema, path: readonly string[] = []): Leaf[] {
  const { properties } = [schema, ...schema.anyOf ?? []].find(option => option.properties !== undefined) ?? {}
  const own: Leaf[] = path.length === 0 || schema.readOnly === true ? [] : [[path, schema]]
  return [...own, ...Object.entries(properties ?? {}).flatMap(([key, inner]) => leaves(inner, [...path, key]))]
}

const nested = (path: readonly string[], value: unknown): unknown =>
  path.reduceRight((inner: unknown, key) => ({ [key]: inner }), value)
const at = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value)

const values: readonly unknown[] = [
  null, true, 0, -1, 1.5, 2 ** 53, 2 ** 60, 1e300, '', 'x', '\u0000\n"\'\\', '\ud800', [], [null], ['a', null], [[null]], [{ a: null }], {}, { a: null },
  { a: [null] }, { a: { b: [1, { c: [null] }] } }, { a: [1, 'two', [3.5, { four: true }]] }, { '': 1, 'a.b': [{}] }
]

/** An answer that is neither a success nor a refusal is a defect. */
async function isTaken (gateway: Api, [method, path]: readonly [string, string], body: unknown): Promise<boolean> {
  const answer = await gateway.call(method, path, body)
  if (answer.status >= 500) throw new Error(`${method} ${path} ${JSON.stringify(body)}: ${answer.text}`)
  return answer.status < 300
}

t.test('every key of settings and slot files takes every JSON value, or refuses it by its path', async t => {
  const quiet = (): void => {}
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
  const settings = leaves(z.toJSONSchema(svcSchema, { io: 'input' }) as Schema)
  const slot = leaves(z.toJSONSchema(slotConfigSchema, { io: 'input', unrepresentable: 'any' }) as Schema)
  t.ok(settings.length > 60 && slot.length > 40, `${settings.length} and ${slot.length} keys`)
  let written = 0
  for (const value of values) {
    for (const [path] of settings) {
      const next = mergeTables({}, nested(path, value) as Table)
      if (checkShape(svcSchema, next, { audience: 'client', written: true }).value === null) continue
      const text = patchToml('# mine\n', next, quiet)
      if (!isDeepStrictEqual(parseToml(text), next)) throw new Error(`${path.join('.')}: ${JSON.stringify(value)} became ${text}`)
      written++
    }
    for (const [path] of slot) {
      const patched = await patchedSlot('probe', { text: '', data: {} }, nested(path, value) as Table, log, noProviders).catch((error: unknown) => {
        if (!isSvcError(error)) throw error
        return null
      })
      if (patched === null) continue
      const { value: again } = checkSlotFile('probe', parseToml(patched.text), 'file')
      if (!isDeepStrictEqual(again, patched.slot)) throw new Error(`${path.join('.')}: ${JSON.stringify(value)} became ${patched.text}`)
      written++
    }
  }
  t.ok(written > 200, `${written} values were taken`)
})

t.test('null in a list is refused by its path, at every door to a file', async t => {
  const gateway = await api(t)
  for (const [call, body, path] of [
    [['PATCH', '/api/slots/agent/defaults'], { extra: { a: [null] } }, 'model.extra.a.0'],
    [['PUT', '/api/slots/agent/config'], { options: { a: [{ b: [null] }] } }, 'options.a.0.b.0'],
    [['PATCH', '/api/settings'], { plugins: { config: { own: { a: [null] } } } }, 'plugins.config.own.a.0'],
    [['PUT', '/api/settings'], { memory: { graph: { a: [null] } } }, 'memory.graph.a.0'],
    [['POST', '/api/models'], { id: 'm', path: '/dev/null', metadata: { a: [null] } }, 'metadata.a.0']
  ] as const) {
    const answer = await gateway.call(call[0], call[1], body)
    t.equal(answer.status, 400, `${call.join(' ')}: ${answer.text}`)
    t.match(answer.json.error, { message: /null/, details: { fields: [{ path }] } }, call.join(' '))
  }
})

t.test('what a free table takes is read back as it was', async t => {
  const gateway = await api(t)
  const table = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 4 })
  const holds = async (
    call: readonly [string, string], path: readonly string[], value: unknown, read: readonly string[] = path
  ): Promise<void> => {
    if (!await isTaken(gateway, call, nested(path, value))) return
    await gateway.gateway.kernel().config.reload()
    const stored = at(gateway.gateway.kernel().config.snapshot, read) ?? at((gateway.slots.config('agent')), read)
    const wanted = withoutNulls(value)
    if (!isDeepStrictEqual(JSON.parse(JSON.stringify(stored)), wanted)) {
      throw new Error(`${call.join(' ')}: ${JSON.stringify(value)} became ${JSON.stringify(stored)}`)
    }
    await isTaken(gateway, call, nested(path, null))
  }
  await fc.assert(fc.asyncProperty(table, async value => {
    await holds(['PATCH', '/api/settings'], ['plugins', 'config', 'own'], value, ['svc', 'plugins', 'config', 'own'])
    await holds(['PUT', '/api/slots/agent/config'], ['options'], value)
    await holds(['PUT', '/api/slots/agent/config'], ['model', 'extra'], value)
  }), { numRuns: 8 })
  t.pass('on everything that was tried')
})

/** A null takes its key out. `-0` is 0 in a file. */
function withoutNulls (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value === 0 ? 0 : value
  const kept = Object.entries(value).filter(([, inner]) => inner !== null)
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutNulls(inner)]))
}

const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema
const isNumber = ({ type }: Schema): boolean => type === 'number' || type === 'integer'
/** A number, also one that may be null. */
const numberIn = (schema: Schema): Schema | undefined => isNumber(schema) ? schema : schema.anyOf?.find(isNumber)

function bounded (schema: z.ZodType, bound: 'least' | 'most'): ReadonlyArray<readonly [path: readonly string[], value: number]> {
  return leaves(jsonSchema(schema)).flatMap(([path, leaf]) => {
    const { minimum, exclusiveMinimum, maximum } = numberIn(leaf) ?? {}
    const value = bound === 'most' ? maximum : minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + 0.001)
    return value === undefined ? [] : [[path, value]]
  })
}

t.test('every number that can be configured has bounds that arithmetic survives', async t => {
  for (const schema of [svcSchema, slotConfigSchema, upstreamSchema, externalProviderSchema, modelRowSchema]) {
    for (const [path, leaf] of leaves(jsonSchema(schema))) {
      const number = numberIn(leaf)
      // what a file weighs is measured, and adds up to nothing
      if (number === undefined || path.at(-1) === 'size_bytes') continue
      const { minimum = number.exclusiveMinimum, maximum } = number
      t.ok(minimum !== undefined && maximum !== undefined && maximum * 1000 < Number.MAX_SAFE_INTEGER, path.join('.'), { number })
    }
  }
  for (const bound of ['least', 'most'] as const) {
    // all plugins: a number at its bound must not trouble any of them
    const gateway = await api(t, { group: [...apiPlugins, text] })
    // the plugin that brings clusters is none of these
    const settings = bounded(svcSchema, bound).filter(([path]) => !/port/.test(path.at(-1)!) && path[1] !== 'max_slots' && path[1] !== 'kubernetes')
    t.ok(settings.length > 25, `${settings.length} settings`)
    for (const [path, value] of settings) {
      t.ok(await isTaken(gateway, ['PATCH', '/api/settings'], nested(path, value)), `${path.join('.')} = ${value}`)
    }
    // a slot of several engines is judged by more than its numbers, and has rules and tests of its own
    const ofSlots = bounded(slotConfigSchema, bound).filter(([path]) => !/^(port|gpu_index|(m(in|ax)_)?replicas)$/.test(path[0]!))
    for (const [path, value] of ofSlots) {
      t.ok(await isTaken(gateway, ['PUT', '/api/slots/agent/config'], nested(path, value)), `${path.join('.')} = ${value}`)
    }
    // the least a start may take is less than a busy machine needs
    if (bound === 'most') {
      const chat = { model: 'agent', messages: [{ role: 'user', content: 'hello' }] }
      t.equal((await gateway.call('POST', '/v1/chat/completions', chat)).status, 200)
      t.equal((await gateway.call('POST', '/v1/chat/completions', { ...chat, stream: true })).status, 200)
      await gateway.slots.unload('agent')
    }
    for (const path of ['/api/status', '/api/slots', '/api/activity', '/api/requests', '/api/settings']) {
      t.equal((await gateway.call('GET', path)).status, 200, path)
    }
    t.same(gateway.logs.filter(({ level }) => level === 'error'), [], 'nothing failed behind the scenes')
  }
})

t.test('a model store that is no folder is refused by the settings, and one that was written by hand is told', async t => {
  const gateway = await api(t)
  const file = join(gateway.home, 'etc/svc/svc.toml')
  for (const models of [{ store: file }, { pull_root: file }]) {
    await refused(t, gateway, ['PATCH', '/api/settings', { models }], 400, 'models.store_not_directory', /is not a folder/)
  }
  await writeFile(file, `${await gateway.file('etc/svc/svc.toml')}[models]\nstore = "${file}"\n`)
  await gateway.call('POST', '/api/settings/reload')
  t.equal((await gateway.call('GET', '/api/chat-templates')).status, 200, 'what lists the store lives with it')
  t.match((await gateway.call('GET', '/api/status')).json.diagnostics, [
    { file: 'svc.toml', path: 'models.store', code: 'models.store_not_directory', message: /is not a folder/ }
  ])
})

t.test('the slot that extracts the graph is an enabled llm slot, and the status speaks of no memory where there is none', async t => {
  const slot = 'provider = "fake"\ndevice = "cpu"\n'
  const gateway = await api(t, {
    files: { 'etc/svc/slots/vectors.toml': `${slot}type = "embedding"\n`, 'etc/svc/slots/off.toml': `${slot}enabled = false\n` }
  })
  const graph = (name: string | null): object => ({ memory: { graph: { extraction_slot: name } } })
  for (const name of ['nope', 'vectors', 'off', 'utility-2']) {
    const { json } = await refused(t, gateway, ['PATCH', '/api/settings', graph(name)], 400, 'config.invalid', /an enabled llm slot: one of agent/)
    t.match(json.error.details.fields, [{ path: 'memory.graph.extraction_slot' }])
  }
  t.equal((await gateway.call('PUT', '/api/settings', graph('agent'))).status, 200)
  t.equal((await gateway.call('PUT', '/api/settings', graph(null))).status, 200, 'the default is named by nobody')
  t.match((await gateway.call('GET', '/api/status')).json, { memory_enabled: false })

  // the table is its plugin's, and means the same while that is away
  t.equal((await gateway.call('PATCH', '/api/settings', { plugins: { disabled: ['memory'] } })).status, 200)
  await refused(t, gateway, ['PATCH', '/api/settings', graph('off')], 400, 'config.invalid', /an enabled llm slot: one of agent/)
  await refused(t, gateway, ['PATCH', '/api/settings', { memory: { engin: 'x' } }], 400, 'config.invalid', /memory.engin is not a known key; did you mean engine\?/)
  t.equal((await gateway.call('PATCH', '/api/settings', { memory: { engine: 'hindsight' } })).status, 200)
  t.match((await gateway.call('GET', '/api/settings')).json.memory, { enabled: false, engine: 'hindsight', graph: { extraction_slot: 'utility' } })
  t.match((await gateway.call('GET', '/api/settings/schema')).json.properties.memory.properties.engine, { apply_class: 'live', default: 'embedded' })
})
