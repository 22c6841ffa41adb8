import { existsSync } from 'node:fs'
import {
  core, definePlugin, defineProvider, type BodyEdits, type Device, type JsonBody, type SlotType, type Surface
} from 'svc-gateway/plugin'
import { z } from 'zod'
import { abilities } from './abilities.js'
import { argvSegments, parallelOf, slotProblem } from './argv.js'
import { locateEmbeddedEngine } from './embedded-engine.js'
import { facts } from './facts.js'
import { forcedInChat, forcedInMessages } from './forced-tool.js'
import { mistakenFailure } from './engine-refusals.js'
import { engineMetrics, loadedModel } from './engine-status.js'
import { llamaFlags } from './flags.js'
import { ignoredInMessages, ignoredInResponses } from './ignored.js'
import { containerSpec, engineChoices, isEmbeddedAlone, processCandidates } from './launch.js'
import { libraryIn } from './ref.js'
import { responseEvents } from './response-events.js'
import { responseRequest } from './response-request.js'
import { detokenize, tokenize } from './tokens.js'

const binarySchema = z.string().min(1)
  .refine(value => value.startsWith('/') || !value.includes('/'), { error: 'must be an absolute path or a command name' })
  .meta({ description: 'llama-server for engines that are child processes; unset looks on PATH' })

const preferSchema = z.enum(engineChoices).default('auto')
  .meta({ description: 'Engine of child processes: llama-server, else the embedded one; llama-server only; or the embedded one wherever it can run' })

const configSchema = z.strictObject({ binary: binarySchema.optional(), prefer: preferSchema })

const surface = (path: string, streaming: boolean): Surface =>
  ({ path, streaming, body: 'json', refusal: mistakenFailure, refusalFrom: 500 })

const llamaDevices = ['gpu-rocm', 'gpu-vulkan', 'gpu-cuda', 'cpu'] as const

const usualProfiles: Readonly<Record<typeof llamaDevices[number], string>> = {
  'gpu-rocm': 'rocm', 'gpu-vulkan': 'vulkan', 'gpu-cuda': 'cuda', 'cpu': 'cpu-llm'
}

/** llama.cpp's server: chat, completions, embeddings and reranking on GPU and CPU. See README.md. */
export default definePlugin({
  name: 'llm-server',
  kind: 'provider',
  apiVersion: 1,
  configSchema,
  requires: { config: core.config },
  register (ctx) {
    const embedded = locateEmbeddedEngine(ctx.services.config.paths.state)
    ctx.addProvider(defineProvider({
      ...facts,
      name: 'llm-server',
      title: 'llama.cpp server',
      about: { license: 'MIT', homepage: 'https://github.com/ggml-org/llama.cpp' },
      family: 'llm-server',
      devices: [...llamaDevices],
      slotTypes: ['llm', 'embedding', 'reranking'],
      cli: true,
      needsModel: true,
      surfaces: {
        'chat': { ...surface('/v1/chat/completions', true), edit: forcedInChat },
        'completions': surface('/v1/completions', true),
        'embeddings': { ...surface('/v1/embeddings', false), edit: withoutNullFormat },
        'rerank': surface('/v1/rerank', false),
        'responses': { ...surface('/v1/responses', true), edit: responseRequest, events: responseEvents, ignores: ignoredInResponses },
        'messages': { ...surface('/v1/messages', true), edit: forcedInMessages, ignores: ignoredInMessages },
        'infill': surface('/infill', true),
        'tokenize': { path: '/tokenize', streaming: false, body: 'json', light: true, adapt: tokenize },
        'detokenize': { path: '/detokenize', streaming: false, body: 'json', light: true, adapt: detokenize },
        // counting needs the tokenizer alone
        'count-tokens': { ...surface('/v1/messages/count_tokens', false), light: true, ignores: ignoredInMessages }
      },
      abilities: input => {
        const { driver } = ctx.services.config.snapshot.svc.runtime
        return abilities(input, isEmbeddedAlone(input.slot, ctx.config, driver))
      },
      lightPaths: ['/tokenize', '/detokenize', '/apply-template', '/props', '/lora-adapters', '/v1/messages/count_tokens'],
      // 200 serves, 503 loads: the kernel's default verdict
      health: { path: '/health' },
      exclusivity: 'standard',
      flags: llamaFlags,
      image: 'vulkan',
      defaultProfile,
      argvSegments,
      slotProblem,
      concurrency: parallelOf,
      containerSpec,
      processSpec: input => processCandidates(input, ctx.config, embedded),
      loadedModel,
      metrics: engineMetrics
    }))
    ctx.addSetting({ key: 'binary', schema: binarySchema, description: 'llama-server binary of child-process slots', apply: 'gateway-restart' })
    ctx.addSetting({ key: 'prefer', schema: preferSchema, description: 'Engine of child-process slots', apply: 'gateway-restart' })
    ctx.addHealth(() => ({ embedded_engine: [embedded.library, libraryIn(embedded.installed)].some(existsSync) ? 'installed' : 'absent' }))
  }
})

/** Null on the wire says "not given"; llama-server refuses it here. Pure. */
function withoutNullFormat (body: JsonBody): BodyEdits | null {
  return body.has('encoding_format') ? null : { drop: ['encoding_format'] }
}

/** The device's own, but ROCm has profiles made for embedding and reranking. Pure. */
function defaultProfile (device: Device, type: SlotType): string | null {
  if (device === 'gpu-rocm' && type === 'embedding') return 'embed'
  if (device === 'gpu-rocm' && type === 'reranking') return 'rerank'
  return device === 'npu' ? null : usualProfiles[device]
}
