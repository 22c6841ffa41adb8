import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  defineErrors, errorCodes, errorEnvelope, errorType, isErrorCode, isPluginErrors, isSvcError, mayHeal, messageOf, retryAfterS,
  retryHeader, shownName, SvcError, svcError, type ErrorRow
} from '../../../kernel/contract/index.js'
import { root, sources } from '../../repository.js'

const TABLE = 'kernel/contract/errors/error-codes.ts'
const files = sources('kernel', 'plugins', 'cli')

interface Table {
  /** Where its rows are documented. */
  readonly readme: string
  readonly rows: Readonly<Record<string, ErrorRow>>
}

/** The kernel's table and those of the plugins, by the file that has them. */
const tables = new Map<string, Table>([[TABLE, { readme: 'kernel/contract/README.md', rows: errorCodes }]])
for (const { path } of files.filter(file => /^plugins\/.*\/errors\.ts$/.test(file.path))) {
  const module = await import(new URL(`../../../${path.replace(/ts$/, 'js')}`, import.meta.url).href) as Record<string, unknown>
  const rows = Object.values(module).filter(isPluginErrors).map(table => table.rows as Table['rows'])
  tables.set(path, { readme: path.replace('errors.ts', 'README.md'), rows: Object.assign({}, ...rows) as Table['rows'] })
}
/** All that a file has in single quotes, as far as it may be a code. */
const quoted = new Map(files.map(({ path, text }) => [path, new Set([...text.matchAll(/'([\w.]+)(?=')/g)].map(([, word]) => word!))] as const))
const all: Readonly<Record<string, ErrorRow>> = Object.assign({}, ...[...tables.values()].map(({ rows }) => rows)) as Table['rows']

t.test('every code that is thrown is in a table, with the status of the table', async t => {
  const thrown = files.flatMap(({ path, text }) =>
    [...text.matchAll(/\b(?:new SvcError|[a-z]\w*Error)\(\s*'([a-z]\w*(?:\.\w+)+)'(?:,\s*(\d{3}))?/g)].map(([, code, status]) => ({ path, code: code!, status })))
  t.ok(thrown.length > 100, `${thrown.length} places`)
  t.strictSame(thrown.filter(({ code }) => !Object.hasOwn(all, code)), [], 'they are in a table')
  t.strictSame(thrown.filter(({ code, status }) => status !== undefined && Number(status) !== all[code]?.status), [], 'with their status')
})

t.test('a code belongs to who raises it: the kernel has those that it raises itself, or that several plugins share', async t => {
  const foreign = Object.keys(errorCodes).flatMap(row => {
    const users = [...quoted].filter(([path, words]) => path !== TABLE && words.has(row)).map(([path]) => path)
    const plugins = new Set(users.filter(path => path.startsWith('plugins/')).map(path => path.split('/').slice(0, 3).join('/')))
    return plugins.size > 1 || users.some(path => !path.startsWith('plugins/')) ? [] : [`'${row}' is raised by ${[...plugins].join() || 'nothing'} alone`]
  })
  t.strictSame(foreign, [])
})

t.test('every row is used; a code that nothing raises is a promise that nothing keeps', async t => {
  const unused = [...tables].flatMap(([table, { rows }]) => {
    const users = [...quoted].filter(([path]) => path !== table)
    return Object.keys(rows).filter(row => !users.some(([, words]) => words.has(row)))
  })
  t.strictSame(unused, [])
  t.equal(Object.keys(all).length, [...tables.values()].reduce((sum, { rows }) => sum + Object.keys(rows).length, 0), 'no code is in two tables')
})

t.test('every table is in the README beside it, row for row, and its plugin lists it', async t => {
  for (const [path, { readme, rows }] of tables) {
    const [, text = ''] = readFileSync(join(root, readme), 'utf8').split('<!-- error-codes -->')
    const written = [...text.matchAll(/^\| `([^`]+)` \| (\d{3}) \| (.*) \|$/gm)].map(([, code, status, when]) => `${code!} ${status!} ${when!}`)
    t.strictSame(written.sort(), Object.entries(rows).map(([code, { status, when }]) => `${code} ${status} ${when}`).sort(), readme)
    if (path === TABLE) continue
    const index = readFileSync(join(root, path.replace('errors.ts', 'index.ts')), 'utf8')
    const [, listed = ''] = /^  errors: \[?([\w, ]+)\]?,$/m.exec(index) ?? []
    const exported = [...readFileSync(join(root, path), 'utf8').matchAll(/^export const (\w+)/gm)].map(([, name]) => name!)
    t.strictSame(listed.split(', ').sort(), exported.sort(), `${path}: \`errors\` of the definition`)
  }
})

t.test('every error code is dotted lower case with a status and a reason', async t => {
  const rows = Object.entries(all).map(([code, { status, when }]) => ({ code, status, when }))
  t.strictSame(rows.filter(({ code }) => !/^[a-z][a-z_]*(\.[a-z0-9_]+)+$/.test(code)), [])
  t.strictSame(rows.filter(({ status }) => status < 400 || status >= 600), [])
  t.strictSame(rows.filter(({ when }) => !/^[^A-Z].*[^.]$|^the |^a |^an /.test(when)), [], 'a condition, not a sentence')
  t.notOk(isErrorCode('constructor'))
})

t.test('an error of another copy of the contract is known by its brand', async t => {
  const cause = new Error('why')
  const error = svcError('slot.not_found', 'no slot', { details: { slot: 'a' }, param: 'slot', cause })
  t.match(error, { code: 'slot.not_found', status: 404, message: 'no slot', details: { slot: 'a' }, param: 'slot', cause, name: 'SvcError' })
  t.ok(isSvcError(error))
  t.ok(isSvcError(Object.assign(new Error('of another copy of the contract'), { [Symbol.for('svc.error')]: true })), 'known by its brand')
  for (const other of [new Error('x'), null, 'text', { code: 'slot.not_found' }]) t.notOk(isSvcError(other))
  t.strictSame(errorEnvelope(new SvcError('a.b', 418, 'm'), 'r'), { error: { code: 'a.b', message: 'm', type: 'invalid_request_error', param: null, details: {}, request_id: 'r' } })
  t.strictSame([400, 401, 403, 404, 409, 413, 429, 500, 502, 503].map(errorType), [
    'invalid_request_error', 'authentication_error', 'permission_error', 'not_found_error', 'conflict_error', 'invalid_request_error', 'rate_limit_error',
    'server_error', 'server_error', 'overloaded_error'
  ])
  for (const [value, seconds] of [[2.1, 3], [0, null], [-1, null], ['5', null], [undefined, null]] as const) {
    t.equal(retryAfterS(svcError('slot.crash_looping', 'x', { details: { retry_after_s: value } })), seconds, String(value))
  }
  t.strictSame([messageOf(cause), messageOf('text'), messageOf(null)], ['why', 'text', 'null'])
})

t.test('what an error quotes is cut, wherever it was made', async t => {
  const name = 'n'.repeat(100_000)
  const error = svcError('slot.not_found', `no slot '${name}'; 'short' stays`, { details: { slot: name, deep: [{ [name]: name }], n: 1 } })
  t.equal(error.message, `no slot '${'n'.repeat(200)}…'; 'short' stays`)
  t.ok(JSON.stringify(errorEnvelope(error, 'r')).length < 10_000)
  t.match(error.details, { n: 1, slot: /^n{200}…$/ })
  t.equal(shownName('agent'), 'agent')
  t.equal(svcError('slot.not_found', 'x'.repeat(9_000)).message.length, 201, 'what is no word')
  t.equal(svcError('slot.not_found', 'word '.repeat(9_000)).message.length, 4_097)
  t.equal(svcError('slot.not_found', `it's ${name}`).message, `it's ${'n'.repeat(200)}…`, 'a lone quote')
})

t.test('a failure that stays until somebody changes something tells SDKs not to ask again', async t => {
  const no = ['x-should-retry', 'false']
  const cases: Array<[SvcError, readonly string[] | null]> = [
    [svcError('model.not_found', 'm'), no],
    [svcError('slot.load_failed', 'm'), no],
    [svcError('slot.load_failed', 'm', { heals: true }), null],
    [svcError('slot.queue_full', 'm'), null],
    [svcError('slot.queue_full', 'm', { details: { retry_after_s: 2 } }), ['retry-after', '2']],
    [svcError('plugin.unavailable', 'm', { heals: false }), no],
    [svcError('approvals.unavailable', 'm'), no],
    [new SvcError('own.code', 501, 'm'), no],
    [new SvcError('own.code', 502, 'm'), null]
  ]
  for (const [error, header] of cases) {
    t.strictSame(retryHeader(error), header, `${error.code} ${error.status} ${String(error.heals)}`)
    t.equal(mayHeal(error), header !== no)
  }
  const older = Object.assign(new Error('of another copy of the contract'), { [Symbol.for('svc.error')]: true, code: 'slot.stopped', status: 503, details: {} })
  t.ok(isSvcError(older) && mayHeal(older), 'an error without the field is judged by its row')
})

t.test('a plugin\'s table makes errors of its own codes alone', async t => {
  const notesError = defineErrors('notes', {
    'too_long': { status: 413, when: 'a note is too long' },
    'store.busy': { status: 503, heals: true, when: 'another note is being written' },
    'store.gone': { status: 503, when: 'the store was removed' }
  })
  const error = notesError('notes.too_long', 'it is', { details: { length: 3 }, param: 'text' })
  t.match(error, { code: 'notes.too_long', status: 413, message: 'it is', details: { length: 3 }, param: 'text' })
  t.ok(isSvcError(error))
  t.strictSame([mayHeal(error), mayHeal(notesError('notes.store.busy', 'x')), mayHeal(notesError('notes.store.gone', 'x'))], [false, true, false],
    'as its row says, not as its status')
  t.ok(mayHeal(notesError('notes.store.gone', 'x', { heals: true })), 'an error may know better')
  t.strictSame(notesError.kind('notes.store.busy'), { code: 'notes.store.busy', status: 503, heals: true, when: 'another note is being written' })
  // @ts-expect-error not one of its own
  t.throws(() => notesError('slot.not_found', 'x'), TypeError)
  // @ts-expect-error nor one that is not in the table
  t.throws(() => notesError.kind('notes.other'), TypeError)
  t.notOk(isPluginErrors(() => error))
  t.throws(() => defineErrors('My-Notes', {}), /'My-Notes' cannot begin an error code/)
  t.throws(() => defineErrors('notes', { 'Too-Long': { status: 413, when: 'x' } }), /'notes\.Too-Long' cannot be an error code/)
  t.throws(() => defineErrors('notes', { long: { status: 200, when: 'x' } }), /'notes\.long' has status 200/)
  t.throws(() => defineErrors('notes', { long: { status: 413, when: '' } }), /'notes\.long' does not say when/)
})
