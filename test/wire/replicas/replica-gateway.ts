import type { Test } from 'tap'
import type { SlotState, SlotStatus } from '../../../kernel/contract/index.js'
import { isServing } from '../../../kernel/slots/schedule/slot-machine.js'
import { chatAnswer, createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

interface Answer {
  readonly error?: { readonly code: string }
  readonly choices?: ReadonlyArray<{ readonly message: { readonly content: string } }>
}

export interface ReplicaGateway extends WireGateway {
  /** The answer's content, or status and code. Of the normal class. */
  ask (user: string, body?: object, priority?: 'normal' | 'low'): Promise<string>
  /** Users whose requests a replica has got, in order. */
  asked (index: number): readonly string[]
  /** Lets an engine answer this user's request. */
  finish (user: string): void
  /** The slot `agent`. */
  status (): SlotStatus
  states (): readonly SlotState[]
  ready (count: number): Promise<void>
}

/** A slot `agent` whose engines work on `workers` requests at a time each and answer none before they are told to. */
export async function replicaGateway (t: Test, keys: string, options: WireOptions = {}): Promise<ReplicaGateway> {
  const waiting = new Map<string, () => void>()
  const slot = `type = "llm"\nprovider = "serial"\ndevice = "cpu"\n${keys}\n[model]\ndefault = "fake-model"\n`
  const gateway = await wireGateway(t, {
    ...options,
    plugins: [createFakeProviderPlugin({
      name: 'serial',
      concurrency: ({ slot: { workers } }) => workers,
      takesModel: true,
      containerSpec: ({ model }) => ({ command: ['--model', model?.path ?? 'none'] })
    }), ...options.plugins ?? []],
    files: { 'etc/svc/slots/agent.toml': slot, ...options.files },
    onStart: async started => {
      await options.onStart?.(started)
      started.engine.answer(({ body }) => {
        const { user = '' } = JSON.parse(body.toString()) as { user?: string }
        const told = new Promise<void>(resolve => { waiting.set(user, resolve) })
        return { headers: { 'content-type': 'application/json' }, chunks: [chatAnswer(user)], after: told }
      })
    }
  })
  const nameOf = (index: number): string => index === 1 ? 'agent' : `agent.${index}`
  const status = (): SlotStatus => gateway.slots.status('agent')
  const states = (): readonly SlotState[] => status().replicas!.map(({ state }) => state)
  return Object.assign(gateway, {
    status,
    states,
    ask: async (user: string, body: object = {}, priority = 'normal') => {
      const response = await gateway.fetch('/v1/chat/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-svc-priority': priority },
        body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'hi' }], user, ...body })
      })
      const { error, choices } = await response.json() as Answer
      return error === undefined ? choices![0]!.message.content : `${response.status} ${error.code}`
    },
    asked: (index: number) => gateway.runtime.started.filter(({ slot: name }) => name === nameOf(index))
      .flatMap(({ engine }) => engine.requests).filter(({ url }) => url.includes('chat'))
      .map(({ body }) => (JSON.parse(body.toString()) as { user?: string }).user ?? ''),
    finish: (user: string) => waiting.get(user)!(),
    ready: (count: number) => until(() => states().filter(isServing).length === count, `${count} are ready`)
  })
}
