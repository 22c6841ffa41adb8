import t from 'tap'
import {
  errorCodes, errorEnvelope, errorType, isErrorCode, isSvcError, mayHeal, messageOf, retryAfterS, retryHeader, shownName,
  SvcError, svcError
} from '../../../kernel/contract/index.js'
import { sources } from '../../repository.js'

const TABLE = 'kernel/contract/error-codes.ts'
const files = sources('kernel', 'plugins', 'cli')

t.test('every code that is thrown is in the table, with the status of the table', async t => {
  let seen = 0
  for (const { path, text } of files) {
    for (const [, code, status] of text.matchAll(/\b(?:new SvcError|svcError)\(\s*'([^']+)'(?:,\s*(\d{3}))?/g)) {
      seen++
      if (!isErrorCode(code!)) {
        t.fail(`${path} throws '${code!}', which is not in ${TABLE}`)
        continue
      }
      if (status !== undefined) t.equal(Number(status), errorCodes[code].status, `${path}: status of ${code}`)
    }
  }
  t.ok(seen > 100, `${seen} places`)
})

t.test('every row of the table is used', async t => {
  const code = files.filter(({ path }) => path !== TABLE).map(({ text }) => text).join('\n')
  for (const row of Object.keys(errorCodes)) t.ok(code.includes(`'${row}'`), `'${row}' is used somewhere; a code that nothing throws is a promise that nothing keeps`)
})

t.test('rows', async t => {
  for (const [code, { status, when }] of Object.entries(errorCodes)) {
    t.match(code, /^[a-z][a-z_]*(\.[a-z0-9_]+)+$/, code)
    t.ok(status >= 400 && status < 600, code)
    t.match(when, /^[^A-Z].*[^.]$|^the |^a |^an /, `${code}: a condition, not a sentence`)
  }
  t.notOk(isErrorCode('constructor'))
})

t.test('errors', async t => {
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
    [svcError('activity.unavailable', 'm'), no],
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
