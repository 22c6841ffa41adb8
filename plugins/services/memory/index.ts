import { core, definePlugin, settingsOf } from 'svc-gateway/plugin'
import { z } from 'zod'
import { embeddedMemoryRef } from '../memory-engine/ref.js'
import { memoryError } from './errors.js'
import { BankNames } from './bank-names.js'
import { HindsightEngine } from './hindsight/hindsight-engine.js'
import { hindsightService } from './hindsight/service.js'
import { Memory } from './memory.js'
import { Notes } from './notes/notes.js'
import { SecondPass } from './notes/second-pass.js'
import { memoryRef, type MemoryService } from './ref.js'
import { memorySettings } from './settings.js'

const seconds = z.number().min(0.1).max(86_400)
const REFLECT_TIMEOUT = 'SVC_MEMORY_REFLECT_TIMEOUT_S'

const configSchema = z.strictObject({
  connect_timeout_s: seconds.default(3).meta({ description: 'Longest wait for a connection to the Hindsight server' }),
  answer_timeout_s: seconds.default(120).meta({ description: 'Longest silence of the Hindsight server' }),
  reflect_timeout_s: seconds.default(900).meta({ description: 'The same for answers that a model writes' }),
  look_timeout_s: seconds.default(3).meta({ description: 'Longest health check of the Hindsight server' })
})

/** In seconds. A variable that is no such number counts for nothing. */
function reflectTimeoutS (variable: string | undefined, setting: number): number {
  const given = seconds.safeParse(variable === undefined || variable.trim() === '' ? undefined : Number(variable))
  return given.success ? given.data : setting
}

/** The memory of agents and chats: its engine, who may see what, and how it is. */
export default definePlugin({
  name: 'memory',
  kind: 'service',
  apiVersion: 1,
  errors: memoryError,
  settings: memorySettings,
  configSchema,
  requires: { clock: core.clock, config: core.config, dispatch: core.dispatch, embedded: embeddedMemoryRef },
  provides: [memoryRef],
  register (ctx) {
    const { clock, config, dispatch, embedded } = ctx.services
    const times = {
      connectMs: ctx.config.connect_timeout_s * 1000,
      answerMs: ctx.config.answer_timeout_s * 1000,
      get reflectMs () { return reflectTimeoutS(config.secret(REFLECT_TIMEOUT), ctx.config.reflect_timeout_s) * 1000 },
      lookMs: ctx.config.look_timeout_s * 1000
    }
    const url = (): string => config.secret('SVC_HINDSIGHT_URL') ?? settingsOf(config.snapshot.svc, memorySettings).url
    const hindsight = new HindsightEngine(() => {
      const { auth_value_env: keyName } = settingsOf(config.snapshot.svc, memorySettings)
      return { url: url(), key: keyName === '' ? undefined : config.secret(keyName), keyName }
    }, times)
    const memory = new Memory({ config, clock, log: ctx.log, engines: { embedded: () => embedded, hindsight: () => hindsight } })
    const names = new BankNames(clock)
    const enter: MemoryService['enter'] = (agent, bank, signal) => names.check(memory.engine(), agent, bank, signal)
    const notes = new Notes(() => memory.engine(), enter, clock, new SecondPass({ clock, config, dispatch, log: ctx.log }))
    ctx.provide(memoryRef, {
      get health () { return memory.health },
      notes,
      engine: () => memory.engine(),
      enter,
      status: () => memory.status(),
      onChange: listener => memory.onChange(listener)
    })
    ctx.addService(hindsightService(memory, url, () => {
      const slots = [...config.snapshot.slots.values()].filter(({ type, enabled }) => type === 'llm' && enabled)
      const slot = slots.find(each => each.default) ?? slots[0]
      return slot === undefined ? null : { name: slot.name, contextSize: slot.model.context_size }
    }))
    ctx.addHealth(() => ({ ...memory.health }))
    let unfollow = (): void => {}
    ctx.onStart(() => {
      memory.follow()
      unfollow = config.onChange(() => memory.follow())
    })
    ctx.onStop(async () => {
      unfollow()
      await memory.close()
    })
  }
})
