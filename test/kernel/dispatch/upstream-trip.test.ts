import assert from 'node:assert/strict'
import fc from '../../property.js'
import t from 'tap'
import type { Dispatcher } from 'undici'
import { svcConfigSchema, svcError, upstreamSchema, type SlotLease, type SvcError, type Upstream } from '../../../kernel/contract/index.js'
import { BodyView } from '../../../kernel/dispatch/body/body-view.js'
import { Breakers } from '../../../kernel/dispatch/upstream/breakers.js'
import type { Prepared } from '../../../kernel/dispatch/call/prepared.js'
import type { Resolution } from '../../../kernel/dispatch/route/resolve.js'
import { UpstreamMeters } from '../../../kernel/dispatch/requests/upstream-meters.js'
import { OutgoingWatchHolder } from '../../../kernel/dispatch/call/watched-call.js'
import { SilenceWatch } from '../../../kernel/dispatch/call/silence-watch.js'
import { UpstreamTrip, type TripDeps } from '../../../kernel/dispatch/call/upstream-trip.js'
import { Throughput } from '../../../kernel/slots/life/engine/throughput.js'
import { createFakeProvider } from '../../../kernel/testing/fake-provider.js'
import { FakeClock, settle } from '../../../kernel/testing/fake-clock.js'

/** One call on the wire, as undici would run it; the story decides what comes of it. */
interface WireCall {
  readonly origin: string
  readonly handler: Dispatcher.DispatchHandler
  state: 'new' | 'connected' | 'answering' | 'over'
}

/** How a call begins: most connect later, some fail before `dispatch` has returned. */
type Start = 'later' | 'throws' | 'fails'

class CountedBreakers extends Breakers {
  entered = 0
  judgements = 0
  override enter (upstream: Upstream): number {
    const ticket = super.enter(upstream)
    this.entered++
    return ticket
  }

  override judge (...args: Parameters<Breakers['judge']>): void {
    this.judgements++
    super.judge(...args)
  }
}

class World {
  readonly clock = new FakeClock()
  readonly calls: WireCall[] = []
  readonly breakers = new CountedBreakers({ clock: this.clock, changed: () => {} })
  readonly sink: string[] = []
  readonly leases = { lent: 0, released: 0 }
  readonly waiting: Array<{ grant: () => void, refuse: () => void }> = []
  settled = 0
  done = false
  readonly prepared: Prepared
  readonly #starts: Start[]

  constructor (upstreams: readonly Upstream[], starts: readonly Start[]) {
    this.#starts = [...starts]
    const clock = this.clock
    const provider = createFakeProvider()
    const body = Buffer.from('{"model":"m","stream":true}')
    const end = (what: string): void => {
      assert.equal(this.done, false, `${what} after the end`)
      this.done = true
      this.sink.push(what)
    }
    const isDone = (): boolean => this.done
    this.prepared = {
      asked: { requestId: 'r', body, request: { headers: {}, raw: { rawHeaders: [] } } },
      options: { surface: 'chat', path: '/chat/completions' },
      isElsewhere: false,
      priority: 'normal',
      view: BodyView.of(body) as BodyView,
      sink: {
        flowing: false,
        bytesOut: 0,
        failed: false,
        isClients: true,
        pendingBytes: 0,
        get done () { return isDone() },
        head: status => {
          assert.equal(this.sink.some(word => word.startsWith('head')), false, 'two heads')
          this.sink.push(`head ${status}`)
        },
        data: () => {
          assert.equal(this.sink.some(word => word.startsWith('head')), true, 'a body without a head')
          return true
        },
        end: () => end('end'),
        fail: error => end(`fail ${error.code}`),
        onDrain: () => {},
        note: () => false,
        flush: () => {},
        hold: () => {},
        cutOff: () => {}
      },
      id: 'r', model: 'm', surface: 'chat', slot: null, upstream: null, sent: false, attempt: 0, note: null,
      startedAt: 0, bytesIn: 2, headers: {}, tokens: 0, shared: null, index: 0,
      stop: () => {},
      giveUp: () => {},
      settle: () => { this.settled++ }
    }
    const deps = {
      clock,
      config: { snapshot: { svc: svcConfigSchema.parse({}) }, secret: () => undefined },
      connections: {
        silence: new SilenceWatch(clock),
        plain: () => null,
        to: (origin: string) => ({
          dispatch: (_options: unknown, handler: Dispatcher.DispatchHandler) => this.#dispatch(origin, handler)
        })
      },
      slots: {
        provider: () => provider,
        config: () => ({}),
        throughput: () => new Throughput(clock),
        acquire: (_slot: string, signal: AbortSignal) => new Promise<SlotLease>((resolve, reject) => {
          const lease = (): SlotLease => {
            this.leases.lent++
            const release = (): void => { this.leases.released++ }
            return { slot: 's', provider, address: { host: 'slot', port: 1 }, modelId: 'm', generation: 1, heard: () => {}, onRevoked: () => {}, release }
          }
          const waiter = { grant: () => resolve(lease()), refuse: () => reject(svcError('slot.load_failed', 'no memory')) }
          this.waiting.push(waiter)
          signal.addEventListener('abort', () => {
            if (this.waiting.includes(waiter)) this.waiting.splice(this.waiting.indexOf(waiter), 1)
            reject(signal.reason as Error)
          })
        })
      },
      breakers: this.breakers,
      meters: new UpstreamMeters(clock),
      upstreams: { get: (name: string) => upstreams.find(upstream => upstream.name === name) },
      resolve: (model: string): Resolution => model === 's' ? { kind: 'slot', slot: 's', modelId: 'm', via: 'slot' } : { kind: 'not-found' },
      holdTimes: () => ({ holdMs: 0, pingMs: 0 }),
      told: (error: unknown) => error as SvcError,
      log: { debug () {}, info () {}, warn () {}, error () {} },
      random: () => 0.5,
      token: 'here',
      outgoing: new OutgoingWatchHolder()
    }
    new UpstreamTrip(deps as unknown as TripDeps, this.prepared, { kind: 'upstream', upstream: 'one', modelId: 'm' }).start()
  }

  get open (): WireCall[] { return this.calls.filter(({ state }) => state !== 'over') }

  act (step: number): void {
    const [call] = this.open
    const wait = this.waiting.shift()
    if (wait !== undefined) {
      if (step % 3 === 0) wait.refuse()
      else wait.grant()
      return
    }
    if (call === undefined) return
    if (call.state === 'new') {
      if (step % 5 === 0) return this.#error(call, 'ECONNREFUSED')
      call.state = 'connected'
      call.handler.onConnect!(() => this.#error(call, 'UND_ERR_ABORTED'))
      return
    }
    if (call.state === 'connected') {
      if (step % 6 === 0) return this.#error(call, step % 4 === 0 ? 'UND_ERR_HEADERS_TIMEOUT' : 'ECONNRESET')
      call.state = 'answering'
      const status = [200, 200, 503, 429, 500, 401][step % 6]!
      const headers = step % 7 === 0 ? [Buffer.from('retry-after'), Buffer.from('1')] : []
      call.handler.onHeaders!(status, headers, () => {}, 'OK')
      return
    }
    if (step % 4 === 0) return this.#error(call, 'UND_ERR_SOCKET')
    if (step % 4 === 1) {
      call.state = 'over'
      call.handler.onComplete!([])
      return
    }
    call.handler.onData!(Buffer.from('data: x\n\n'))
  }

  leave (): void {
    if (this.done) return
    this.done = true
    this.sink.push('left')
    this.prepared.giveUp(new Error('left'))
  }

  check (): void {
    // one that was given up before it had a connection ends when it gets one
    const running = this.open.filter(({ state }) => state !== 'new')
    assert.ok(running.length <= 1, `${running.length} calls at once`)
    assert.ok(this.settled <= 1, 'settled twice')
    if (this.settled === 0) return
    assert.equal(this.done, true, 'settled without an answer')
    assert.equal(running.length, 0, 'a call goes on')
    assert.equal(this.clock.pending, 0, 'a timer is left')
    assert.equal(this.leases.lent, this.leases.released, 'a lease is lost')
    assert.equal(this.breakers.entered, this.breakers.judgements, 'a ticket is lost')
  }

  #dispatch (origin: string, handler: Dispatcher.DispatchHandler): boolean {
    const call: WireCall = { origin, handler, state: 'new' }
    this.calls.push(call)
    const start = this.#starts.shift() ?? 'later'
    if (start === 'later') return true
    call.state = 'over'
    if (start === 'throws') throw Object.assign(new Error('no'), { code: 'UND_ERR_INVALID_ARG' })
    handler.onError!(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }))
    return false
  }

  #error (call: WireCall, code: string): void {
    if (call.state === 'over') return
    call.state = 'over'
    call.handler.onError!(Object.assign(new Error(code), { code }))
  }
}

const policy = fc.record({
  retries: fc.nat(2),
  fallback: fc.subarray(['two', 's', 'three', 'nobody', 's'], { minLength: 0 }),
  breaker_failures: fc.constantFrom(0, 1, 2)
})

t.test('whatever an upstream does: one outcome, one call at a time, and nothing is left', async t => {
  const outcomes = new Map<string, number>()
  await fc.assert(fc.asyncProperty(
    policy, policy, fc.array(fc.constantFrom<Start>('later', 'later', 'throws', 'fails'), { maxLength: 8 }), fc.array(fc.nat(1_000), { minLength: 1, maxLength: 40 }), fc.nat(60),
    async (one, two, starts, steps, leaveAt) => {
      const row = (name: string, more: object): Upstream => upstreamSchema.parse({ name, url: `http://${name}/v1`, auth_style: 'none', ...more })
      const world = new World([row('one', { ...one, fallback: one.fallback }), row('two', two), row('three', { enabled: false })], starts)
      world.check()
      for (const [i, step] of steps.entries()) {
        if (i === leaveAt) {
          // sometimes in the same turn as what happens next
          if (step % 2 === 0) world.act(step)
          world.leave()
        }
        if (step % 9 === 8) await world.clock.advance(20_000)
        else world.act(step)
        await settle()
        world.check()
      }
      // everything that is still open comes to an end now
      for (let i = 0; world.settled === 0 && i < 200; i++) {
        await world.clock.advance(20_000)
        world.act(13)
        await settle()
        world.check()
      }
      assert.equal(world.settled, 1, `never settled: ${world.sink.join(', ')}`)
      for (const call of world.open) call.handler.onConnect!(() => { call.state = 'over' })
      assert.equal(world.open.length, 0, 'a call that nobody waits for is sent')
      const last = world.sink.at(-1)!
      outcomes.set(last, (outcomes.get(last) ?? 0) + 1)
    }
  ), { numRuns: 1_500 })
  for (const outcome of ['end', 'left', 'fail dispatch.upstream_failed', 'fail dispatch.upstream_unavailable', 'fail slot.load_failed']) {
    t.ok((outcomes.get(outcome) ?? 0) > 0, `${outcome}: ${outcomes.get(outcome) ?? 0} of 1,500`)
  }
})
