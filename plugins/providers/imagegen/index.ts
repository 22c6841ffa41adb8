import { core, definePlugin, defineProvider, messageOf, settingsOf, type HealthAnswer, type HealthVerdict, type Surface } from 'svc-gateway/plugin'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { curatedRef } from '../../services/library/ref.js'
import { imagesOf } from './curated.js'
import { ComfyUi } from './engine-api.js'
import { comfyuiError, imageError } from './errors.js'
import { imageEngine } from './image-engine.js'
import { argvSegments, baseFolders, comfyFlags, containerSpec, processCandidates, type EngineHome } from './launch.js'
import { pruneInputs, pruneOutputs } from './outputs.js'
import { imageEngineRef } from './ref.js'
import { render } from './render.js'
import { RunBoard } from './run-board.js'
import { imageSettings } from './settings.js'

const absolutePath = z.string().startsWith('/', { error: 'must be an absolute path' })

const configSchema = z.strictObject({
  data_root: absolutePath.optional()
    .meta({ description: 'Folder with models, output, input and user of the image engine; unset is comfyui in the state folder' }),
  app_dir: absolutePath.default('/opt/ComfyUI').meta({ description: 'Folder of ComfyUI in its container image' }),
  python: z.string().min(1).default('python3').meta({ description: 'Python for an image engine that runs as a process' }),
  main: absolutePath.optional().meta({ description: 'main.py of a ComfyUI on this host; unset runs containers only' }),
  silence_timeout_s: z.number().min(0).default(600)
    .meta({ description: 'Longest time without progress before an image job is cancelled; 0 is no limit' })
})

/** ComfyUI: images from workflow graphs. See README.md. */
export default definePlugin({
  name: 'imagegen',
  kind: 'provider',
  apiVersion: 1,
  errors: [imageError, comfyuiError],
  requires: { clock: core.clock, config: core.config, events: core.events, curated: curatedRef },
  provides: [imageEngineRef],
  settings: imageSettings,
  configSchema,
  register (ctx) {
    const { clock, config, curated, events } = ctx.services
    const { data_root: dataRoot = join(config.paths.state, 'comfyui'), app_dir: appDir, python, main, silence_timeout_s: silenceS } = ctx.config
    const home: EngineHome = { dataRoot, appDir, python, main }
    const catalogue = imagesOf(curated)
    const board = new RunBoard(clock)
    /** Runs that have not let go of the engine yet. */
    const runs = new Set<Promise<unknown>>()
    const tracked = <T>(work: Promise<T>): Promise<T> => {
      runs.add(work)
      const done = (): void => { runs.delete(work) }
      work.then(done, done)
      return work
    }
    const surface: Surface = {
      path: '/prompt',
      streaming: false,
      body: 'json',
      adapt: request => tracked(render({
        catalogue,
        board,
        clock,
        events,
        silenceS,
        inputs: join(dataRoot, 'input'),
        stripMetadata: () => settingsOf(config.snapshot.svc, imageSettings).strip_metadata,
        fetched: () => { void tracked(pruneOutputs(join(dataRoot, 'output'))) }
      }, request))
    }
    ctx.provide(imageEngineRef, imageEngine({ provider: ctx.name, catalogue, dataRoot, clock, events, board, silenceS, tracked }))
    ctx.addProvider(defineProvider({
      name: 'imagegen',
      title: 'ComfyUI',
      about: {
        license: 'GPL-3.0-only',
        homepage: 'https://github.com/comfyanonymous/ComfyUI',
        image: { homepage: 'https://github.com/kyuz0/amd-strix-halo-comfyui-toolboxes' }
      },
      family: 'imagegen',
      devices: ['gpu-rocm', 'gpu-cuda', 'cpu'],
      slotTypes: ['image'],
      cli: false,
      needsModel: false,
      catalogue,
      surfaces: { 'image': surface, 'image-edit': surface, 'image-variation': surface },
      health: { path: '/system_stats', verdict },
      exclusivity: 'standard',
      flags: comfyFlags,
      reservedPorts: [8188],
      images: { imagegen: { tag: 'docker.io/kyuz0/amd-strix-halo-comfyui:latest', devices: ['gpu-rocm'] } },
      profiles: {
        imagegen: { image: 'imagegen', flags: '--disable-mmap --bf16-vae --cache-none', device_class: 'img', intent: 'Image generation' }
      },
      aliases: ['comfyui'],
      modelFolders: [{ folder: 'sd-cpp/img', for: ['image'], usual: true, formerly: ['comfyui'] }],
      defaultFor: [{ type: 'image' }],
      modelNames: { image: /sdxl|flux|stable-diffusion|(^|[^a-z0-9])sd-?1[.-]?5/ },
      image: 'imagegen',
      defaultProfile: device => device === 'cpu' ? null : 'imagegen',
      argvSegments,
      containerSpec: input => containerSpec(input, home),
      processSpec: input => processCandidates(input, home),
      metrics: async (client, signal) => {
        const { running, pending } = await new ComfyUi(client).queue(signal)
        return { requestsProcessing: running.length + pending.length }
      }
    }))
    ctx.addSetting({ key: 'silence_timeout_s', schema: configSchema.shape.silence_timeout_s, description: 'Longest time without progress of an image job', apply: 'gateway-restart' })
    // a container engine mounts what is there; it would make folders of its own that belong to root
    const makeFolders = async (): Promise<void> => {
      await Promise.all([...baseFolders, 'models/checkpoints', 'workflows'].map(folder => mkdir(join(dataRoot, folder), { recursive: true })))
        .catch((error: unknown) => ctx.log.warn({ folder: dataRoot }, `the data folder of the image engine cannot be created: ${messageOf(error)}`))
    }
    let unfollow = (): void => {}
    ctx.onStart(async () => {
      // a new slot may come after the data of the one before was deleted
      unfollow = config.onChange((next, previous) => {
        const isNew = [...next.slots.values()].some(({ type, name }) => type === 'image' && !previous.slots.has(name))
        if (isNew) void tracked(makeFolders())
      })
      await makeFolders()
      void tracked(pruneInputs(join(dataRoot, 'input'), clock))
    })
    // requests that were cut off still have prompts to take out of the engine's queue
    ctx.onStop(async () => {
      unfollow()
      await Promise.allSettled(runs)
    })
  }
})

/** Anything may answer on a port: it is ComfyUI when it tells which Python it runs on. Pure. */
function verdict ({ status, json }: HealthAnswer): HealthVerdict {
  if (status === 503) return 'loading'
  if (status !== 200 || typeof json !== 'object' || json === null) return 'failed'
  const { system } = json as { system?: unknown }
  return hasPython(system) || hasPython(json) ? 'ok' : 'failed'
}

function hasPython (value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof (value as { python_version?: unknown }).python_version === 'string'
}
