import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { core, definePlugin, type ConfigService, type ModelRegistry, type SlotService } from 'svc-gateway/plugin'
import { z } from 'zod'
import { bigramContextLength, bigramGguf } from './bigram-gguf.js'
import { sentenceFor } from './sentence.js'
import { writeOnce } from './model-file.js'

const MODEL = 'svc-demo'
const SLOT = 'agent'

const provisionSchema = z.boolean().default(false)
  .meta({ description: 'If there are no slots at the start, create one with a 5 MB model that says one sentence' })

const commandSchema = z.enum(['svc', 'npx svc']).default('svc')
  .meta({ description: 'How users call the command line, for the sentence of the demo model' })

const configSchema = z.strictObject({ provision: provisionSchema, command: commandSchema })

/** A first slot for those who have no model yet: a real engine, a real model file, one known answer. */
export default definePlugin({
  name: 'demo',
  kind: 'service',
  apiVersion: 1,
  requires: { config: core.config, models: core.models, slots: core.slots },
  configSchema,
  register (ctx) {
    const { config, models, slots } = ctx.services
    ctx.addSetting({ key: 'provision', schema: provisionSchema, description: 'Provision a demo slot when there is none', apply: 'gateway-restart' })
    ctx.onStart(async signal => {
      if (!ctx.config.provision || !isEmpty(config, slots)) return
      await provideModel(models, ctx.config.command, signal)
      // a newcomer's list of models stays the same while slots come and go
      await config.patchSvc({ dispatcher: { list_unloaded: true, list_virtual: false } })
      await slots.create(SLOT, { type: 'llm', device: 'cpu', idle_timeout_s: 0, model: { default: MODEL } })
      ctx.log.info({ slot: SLOT, model: MODEL }, 'made a demo slot, because there was none')
    })
  }
})

/** A slot file that cannot be read counts as a slot: its owner wants it repaired, not joined by another. */
function isEmpty (config: ConfigService, slots: SlotService): boolean {
  return slots.names().length === 0 && !config.snapshot.diagnostics.some(problem => problem.file.startsWith('slots/'))
}

/** Leaves alone whatever has the model's name already, file or registry row. */
async function provideModel (models: ModelRegistry, command: string, signal: AbortSignal): Promise<void> {
  const path = join(models.store, `${MODEL}.gguf`)
  const row = models.get(MODEL)
  if (row !== undefined && row.path !== path) return
  await writeOnce(path, bigramGguf({ sentence: sentenceFor(command) }), signal)
  if (row !== undefined) return
  await models.put(MODEL, {
    path,
    name: 'svc demo model',
    size_bytes: (await stat(path)).size,
    quant: 'F16',
    license: 'MIT',
    capabilities: ['chat', 'embed'],
    tags: ['demo'],
    metadata: { architecture: 'llama', context_length: bigramContextLength }
  })
}
