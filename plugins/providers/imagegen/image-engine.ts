import { messageOf, type Clock, type EngineClient, type EventBus } from 'svc-gateway/plugin'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ComfyUi } from './engine-api.js'
import { countModels, newestPicture, pictureType } from './engine-files.js'
import { comfyuiError } from './errors.js'
import { RunEvents } from './progress-events.js'
import type { CuratedImage, ImageEngine, OutputImage, WorkflowRun } from './ref.js'
import type { RunBoard } from './run-board.js'
import { runGraph } from './run.js'
import { listWorkflows, readGraph } from './workflow-files.js'
import type { Graph } from './workflow.js'

export interface ImageEngineDeps {
  readonly provider: string
  readonly catalogue: readonly CuratedImage[]
  readonly dataRoot: string
  readonly clock: Clock
  readonly events: EventBus
  readonly board: RunBoard
  /** Longest silence of a run in seconds; 0 is no limit. */
  readonly silenceS: number
  /** Keeps hold of a run until it has let go of the engine. */
  readonly tracked: <T>(work: Promise<T>) => Promise<T>
}

/** Jobs of the history that are looked through for one that saved an image. */
const LOOK_BACK = 20

/** What the provider offers to other plugins (ref.ts). */
export function imageEngine (deps: ImageEngineDeps): ImageEngine {
  const { provider, catalogue, dataRoot, board, tracked } = deps
  const models = join(dataRoot, 'models')
  return {
    provider,
    catalogue,
    modelsFolder: models,
    jobs: async (client, signal) => {
      const { running, pending } = await new ComfyUi(client).queue(signal)
      return { running: running.length, pending: pending.length }
    },
    cancelAll: (client, signal) => new ComfyUi(client).cancelAll(signal),
    workflows: () => listWorkflows(dataRoot),
    workflow: async name => {
      const graph = await readGraph(dataRoot, name)
      return { name, run: run => tracked(runFile(deps, name, graph, run)) }
    },
    newest: async (client, signal) => {
      const recent = client === null ? null : await newestOfEngine(client, signal)
      return recent ?? await newestPicture(join(dataRoot, 'output'))
    },
    inventory: () => countModels(models),
    running: slot => board.view(slot),
    has: async ({ folder, hubFile }) => (await stat(join(models, folder, hubFile)).catch(() => null))?.isFile() === true
  }
}

async function runFile (
  { events, clock, board, silenceS }: ImageEngineDeps, name: string, graph: Graph, run: WorkflowRun
): Promise<void> {
  const { client, slot, requestId, queued, signal } = run
  const told = new RunEvents({ events, clock, board }, { requestId, slot, model: name })
  try {
    const { count } = await runGraph({
      client, clock, graph, signal, fetch: false, silenceMs: silenceS * 1000, onQueued: queued, onStep: step => told.step(step)
    })
    told.completed(count)
  } catch (error) {
    if (signal.aborted) told.cancelled()
    else told.failed(messageOf(error))
    throw error
  }
}

/** Null when the engine remembers none, or cannot be reached. */
async function newestOfEngine (client: EngineClient, signal: AbortSignal): Promise<OutputImage | null> {
  const engine = new ComfyUi(client)
  const history = await engine.recent(LOOK_BACK, signal).catch(() => [])
  const files = history.flatMap(({ outputs }) => Object.values(outputs).flatMap(({ images = [] }) => images).reverse())
  const file = files.find(({ type, filename }) => type === 'output' && pictureType(filename) !== null)
  if (file === undefined) return null
  try {
    return { bytes: await engine.image(file, signal), contentType: pictureType(file.filename)! }
  } catch (error) {
    throw comfyuiError('comfyui.image_fetch_failed', `the engine does not return its newest image ${file.filename}: ${messageOf(error)}`,
      { details: { filename: file.filename }, cause: error })
  }
}
