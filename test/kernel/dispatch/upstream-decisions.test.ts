import assert from 'node:assert/strict'
import fc from '../../property.js'
import t from 'tap'
import { upstreamSchema, type Upstream } from '../../../kernel/contract/index.js'
import { admit, judge, newBreaker, reset, wouldAdmit, type Breaker, type Verdict } from '../../../kernel/dispatch/upstream/breaker.js'
import { Breakers } from '../../../kernel/dispatch/upstream/breakers.js'
import { fallbackRoute } from '../../../kernel/dispatch/route/fallback-route.js'
import { gatewaysOf, newGatewayToken, viaFor } from '../../../kernel/dispatch/requests/loop-guard.js'
import type { Resolution } from '../../../kernel/dispatch/route/resolve.js'
import { afterTry, isIll, isTransient, outcomeOf, type Outcome } from '../../../kernel/dispatch/call/retry-policy.js'
import { FakeClock } from '../../../kernel/testing/index.js'

const settings = { failures: 3, openMs: 1_000 }

/** Runs a story: `ask` lets a request in, a verdict is about the n-th request (from 0), a number moves time. */
type Step = 'ask' | readonly [Verdict, number] | number | 'reset'

function story (steps: readonly Step[], given = settings): { breaker: Breaker, passed: boolean[], now: number } {
  let breaker = newBreaker
  let now = 0
  const tickets: Array<number | null> = []
  for (const step of steps) {
    if (step === 'ask') {
      const admission = admit(breaker, given, now)
      breaker = admission.breaker
      tickets.push(admission.ticket)
    } else if (step === 'reset') {
      breaker = reset(breaker)
    } else if (typeof step === 'number') {
      now += step
    } else {
      const ticket = tickets[step[1]]
      if (ticket !== null && ticket !== undefined) breaker = judge(breaker, ticket, step[0], given, now)
    }
  }
  return { breaker, passed: tickets.map(ticket => ticket !== null), now }
}

const three: readonly Step[] = ['ask', ['ill', 0], 'ask', ['ill', 1], 'ask', ['ill', 2]]

t.test('the breaker, state by state', async t => {
  const cases: Array<[string, readonly Step[], Partial<Breaker>, string]> = [
    ['closed: a failure is counted', ['ask', ['ill', 0]], { state: 'closed', failures: 1 }, '1'],
    ['closed: a good answer starts the count anew', ['ask', ['ill', 0], 'ask', ['ill', 1], 'ask', ['alive', 2], 'ask', ['ill', 3]], { state: 'closed', failures: 1 }, '1111'],
    ['closed: who left says nothing', ['ask', ['ill', 0], 'ask', ['unknown', 1]], { state: 'closed', failures: 1 }, '11'],
    ['closed to open', three, { state: 'open', failures: 3, until: 1_000 }, '111'],
    ['open: refused at once', [...three, 'ask', 'ask', 999, 'ask'], { state: 'open' }, '111000'],
    ['open: those that were on their way have no say', ['ask', ...three, ['alive', 0], ['ill', 0], 'ask'], { state: 'open', failures: 3 }, '11110'],
    ['open to half-open: one probe', [...three, 1_000, 'ask', 'ask', 'ask'], { state: 'half-open' }, '111100'],
    ['half-open: a good answer closes', [...three, 1_000, 'ask', ['alive', 3], 'ask', 'ask'], { state: 'closed', failures: 0, openings: 0 }, '111111'],
    ['half-open: a failure opens, for twice as long', [...three, 1_000, 'ask', ['ill', 3], 1_999, 'ask', 1, 'ask'], { state: 'half-open', openings: 2 }, '111101'],
    ['half-open: a probe that left makes room', [...three, 1_000, 'ask', ['unknown', 3], 'ask', 'ask'], { state: 'half-open' }, '111110'],
    ['half-open: a probe that stays silent is not waited for for ever', [...three, 1_000, 'ask', 999, 'ask', 1, 'ask', 'ask'], { state: 'half-open' }, '1111010'],
    ['half-open: the word of the slow probe counts', [...three, 1_000, 'ask', 1_000, 'ask', ['alive', 3]], { state: 'closed' }, '11111'],
    ['half-open: the leaving of an old probe makes no room for a third', [...three, 1_000, 'ask', 1_000, 'ask', ['unknown', 3], 'ask'], { state: 'half-open' }, '111110'],
    ['an operator\'s word closes, and running calls have no say', [...three, 1_000, 'ask', 'reset', ['ill', 3], 'ask'], { state: 'closed', failures: 0 }, '11111'],
    ['a reset of what is closed forgets the count', ['ask', ['ill', 0], 'reset', ['ill', 0]], { state: 'closed', failures: 0 }, '1']
  ]
  for (const [name, steps, breaker, passed] of cases) {
    const seen = story(steps)
    t.match(seen.breaker, breaker, name)
    t.equal(seen.passed.map(Number).join(''), passed.slice(0, seen.passed.length), `${name}: who passed`)
  }
  const off = story([...three, ...three], { ...settings, failures: 0 })
  t.match(off.breaker, { state: 'closed' }, 'switched off')
  t.notOk(off.passed.includes(false))
  let breaker = story(three).breaker
  let now = 0
  for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]) {
    t.equal(breaker.until - now, seconds * 1000, `left alone for ${seconds} s`)
    now = breaker.until
    const probe = admit(breaker, settings, now)
    breaker = judge(probe.breaker, probe.ticket!, 'ill', settings, now)
  }
})

t.test('whatever happens: at most one probe in its time, no answer without a question, and never shut for good', async t => {
  const step = fc.oneof<fc.Arbitrary<Step>[]>(fc.constant('ask'), fc.nat(1_500), fc.tuple(fc.constantFrom<Verdict>('alive', 'ill', 'unknown'), fc.nat(12)))
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), steps => {
    let breaker = newBreaker
    let now = 0
    let probeUntil = -1
    const tickets: Array<number | null> = []
    for (const one of steps) {
      const before = breaker
      if (one === 'ask') {
        assert.equal(wouldAdmit(breaker, settings, now), admit(breaker, settings, now).ticket !== null)
        const admission = admit(breaker, settings, now)
        breaker = admission.breaker
        tickets.push(admission.ticket)
        if (before.state === 'closed') assert.notEqual(admission.ticket, null)
        if (before.state === 'open' && now < before.until) assert.equal(admission.ticket, null)
        if (before.state === 'half-open' && admission.ticket !== null) assert.ok(now >= probeUntil, 'a second probe in the time of the first')
        if (breaker.state === 'half-open' && admission.ticket !== null) probeUntil = breaker.until
      } else if (typeof one === 'number') {
        now += one
      } else if (Array.isArray(one)) {
        const ticket = tickets[one[1] as number]
        if (ticket === null || ticket === undefined) continue
        breaker = judge(breaker, ticket, one[0] as Verdict, settings, now)
        if (one[0] === 'unknown' && breaker !== before) probeUntil = now
        if (before.state === 'open') assert.equal(breaker, before)
        if (before.state === 'closed' && breaker.state === 'open') assert.equal(before.failures, settings.failures - 1)
      }
      assert.ok(breaker.serial >= breaker.since)
    }
    assert.notEqual(admit(breaker, settings, now + 10 * 60_000).ticket, null)
  }), { numRuns: 3_000 })
  t.pass('3,000 stories')
})

t.test('breakers by name, told once when one falls and once when it rises', async t => {
  const clock = new FakeClock()
  const told: string[] = []
  const breakers = new Breakers({ clock, changed: (name, { state }) => { told.push(`${name} ${state}`) } })
  const [one, two] = ['one', 'two'].map(name => upstreamSchema.parse({ name, url: 'http://x', breaker_failures: 2, breaker_seconds: 5 })) as [Upstream, Upstream]
  for (let i = 0; i < 2; i++) breakers.judge(one, breakers.enter(one), 'ill')
  t.throws(() => breakers.enter(one), { code: 'dispatch.circuit_open', status: 503, details: { upstream: 'one', failures: 2, retry_after_s: 5 } })
  t.doesNotThrow(() => breakers.enter(two), 'the others go on')
  t.strictSame(breakers.view(one), { state: 'open', failures: 2, retry_in_ms: 5_000 })
  t.notOk(breakers.wouldAdmit(one))
  await clock.advance(5_000)
  t.strictSame(breakers.view(one), { state: 'half-open', failures: 2, retry_in_ms: 0 }, 'ready for a probe')
  t.ok(breakers.wouldAdmit(one))
  breakers.judge(one, breakers.enter(one), 'ill')
  breakers.reset('one')
  breakers.reset('never seen')
  t.strictSame(breakers.view(one), { state: 'closed', failures: 0, retry_in_ms: 0 })
  for (let i = 0; i < 2; i++) breakers.judge(one, breakers.enter(one), 'ill')
  await clock.advance(5_000)
  breakers.judge(one, breakers.enter(one), 'alive')
  t.strictSame(told, ['one open', 'one open', 'one closed'])
  const off = { ...two, breaker_failures: 0 }
  for (let i = 0; i < 9; i++) breakers.judge(off, breakers.enter(off), 'ill')
  t.doesNotThrow(() => breakers.enter(off))
})

t.test('what follows a failed try', async t => {
  const policy = { retries: 2, waitMs: 500, maxWaitMs: 3_000 }
  const outcome = (status: number, over: Partial<Outcome> = {}): Outcome => ({ status, retryAfterMs: null, again: true, ...over })
  const cases: Array<[string, Outcome, number, number, object]> = [
    ['the first pause', outcome(503), 1, 0, { kind: 'again', waitMs: 500 }],
    ['chance takes up to half', outcome(503), 1, 0.5, { kind: 'again', waitMs: 375 }],
    ['the second is twice as long', outcome(503), 2, 0, { kind: 'again', waitMs: 1_000 }],
    ['no more tries', outcome(503), 3, 0, { kind: 'next' }],
    ['it says when', outcome(429, { retryAfterMs: 2_000 }), 1, 0, { kind: 'again', waitMs: 2_000 }],
    ['never earlier than it says', outcome(429, { retryAfterMs: 2_000 }), 1, 0.8, { kind: 'again', waitMs: 2_200 }],
    ['at once, if it says so', outcome(429, { retryAfterMs: 0 }), 1, 0, { kind: 'again', waitMs: 0 }],
    ['longer than anybody wants to wait', outcome(429, { retryAfterMs: 3_001 }), 1, 0, { kind: 'next' }],
    ['it says that it is of no use', outcome(502, { again: false }), 1, 0, { kind: 'next' }],
    ['about the request itself', outcome(400), 1, 0, { kind: 'answer' }],
    ['about the key', outcome(401), 1, 0, { kind: 'answer' }],
    ['no such model', outcome(404), 1, 0, { kind: 'answer' }],
    ['a loop is one everywhere', outcome(508), 1, 0, { kind: 'answer' }]
  ]
  for (const [name, seen, tries, random, decision] of cases) t.strictSame(afterTry(seen, tries, policy, random), decision, name)
  t.strictSame(afterTry(outcome(500), 1, { ...policy, retries: 0 }, 0), { kind: 'next' }, 'off unless asked for')
  t.strictSame(afterTry(outcome(500), 9, { ...policy, retries: 10 }, 0), { kind: 'again', waitMs: 3_000 }, 'pauses have an end')
  for (let status = 400; status < 600; status++) {
    const wanted = [408, 409, 425, 429].includes(status) || (status >= 500 && ![501, 505, 508].includes(status))
    t.equal(isTransient(status), wanted, String(status))
  }
  for (const status of [502, 503, 504, 520, 529]) t.ok(isIll(outcome(status)), `${status} tells of an illness`)
  for (const status of [400, 401, 404, 429, 500, 501]) t.notOk(isIll(outcome(status)), `${status} does not`)
  t.notOk(isIll(outcome(503, { retryAfterMs: 0 })) || isIll(outcome(502, { again: false })), 'who says when to come back is well enough to say so')
})

t.test('what an upstream says about another try', async t => {
  const now = Date.parse('Wed, 21 Oct 2026 07:28:00 GMT')
  const cases: Array<[Record<string, string>, Partial<Outcome>]> = [
    [{}, { retryAfterMs: null, again: true }],
    [{ 'Retry-After': '7' }, { retryAfterMs: 7_000 }],
    [{ 'retry-after': ' 1.5 ' }, { retryAfterMs: 1_500 }],
    [{ 'retry-after': '0' }, { retryAfterMs: 0 }],
    [{ 'retry-after': 'Wed, 21 Oct 2026 07:28:30 GMT' }, { retryAfterMs: 30_000 }],
    [{ 'retry-after': 'Wed, 21 Oct 2026 07:27:00 GMT' }, { retryAfterMs: 0 }],
    [{ 'retry-after': '-3' }, { retryAfterMs: null }],
    [{ 'retry-after': 'soon 5' }, { retryAfterMs: null }],
    [{ 'retry-after': '9', 'Retry-After-Ms': '250' }, { retryAfterMs: 250 }],
    [{ 'X-Should-Retry': 'false' }, { again: false }],
    [{ 'x-should-retry': 'true' }, { again: true }]
  ]
  for (const [headers, wanted] of cases) {
    const flat = Object.entries(headers).flat()
    t.match(outcomeOf(503, flat, now), wanted, JSON.stringify(headers))
    t.match(outcomeOf(503, flat.map(text => Buffer.from(text)), now), wanted)
  }
})

t.test('where an entry of a fallback chain leads', async t => {
  const known: Record<string, Resolution> = {
    'agent': { kind: 'slot', slot: 'agent', modelId: 'm', via: 'slot' },
    'both': { kind: 'slot', slot: 'both', modelId: null, via: 'slot' },
    'vendor/model': { kind: 'upstream', upstream: 'b', modelId: 'vendor/model' },
    'off': { kind: 'not-loaded', slot: 'off', reason: 'disabled' }
  }
  const look = {
    resolve: (model: string): Resolution => known[model] ?? { kind: 'not-found' },
    upstream: (name: string) => ['b', 'both'].includes(name) ? upstreamSchema.parse({ name, url: 'http://x' }) : undefined
  }
  const cases: Array<[string, object | null]> = [
    ['agent', { kind: 'slot', slot: 'agent' }],
    ['both', { kind: 'slot', slot: 'both' }],
    ['b', { kind: 'upstream', upstream: 'b', modelId: 'asked' }],
    ['vendor/model', { kind: 'upstream', upstream: 'b', modelId: 'vendor/model' }],
    ['b/vendor/other', { kind: 'upstream', upstream: 'b', modelId: 'vendor/other' }],
    ['c/other', null], ['b/', null], ['/x', null], ['off', null], ['nothing', null]
  ]
  for (const [entry, wanted] of cases) {
    const route = fallbackRoute(entry, 'asked', look)
    if (wanted === null) t.equal(route, null, entry)
    else t.match(route, wanted, entry)
  }
})

t.test('the gateways that a request came through', async t => {
  t.equal(viaFor(undefined, 'me'), 'me')
  t.equal(viaFor('a, b', 'me'), 'a, b, me')
  t.equal(viaFor(['a', 'b'], 'me'), 'a, b, me')
  t.strictSame(gatewaysOf(' a ,,b '), ['a', 'b'])
  t.throws(() => viaFor('a, me,b', 'me'), { code: 'dispatch.loop', status: 508, message: /looped back to this gateway/ })
  t.throws(() => viaFor('a,b,c,d,e,f,g,h', 'me'), { code: 'dispatch.loop', message: /8 gateways/ })
  t.not(newGatewayToken(), newGatewayToken())
})
