import { messageOf, svcError, type AdaptedAnswer, type AdaptRequest, type Clock, type EventBus } from 'svc-gateway/plugin'
import { randomBytes } from 'node:crypto'
import { imageError } from './errors.js'
import { InputPictures } from './input-pictures.js'
import { RunEvents } from './progress-events.js'
import type { CuratedImage } from './ref.js'
import { withoutMetadata } from './png-metadata.js'
import { graphParams, parseRequest, type RenderRequest } from './request.js'
import type { RunBoard } from './run-board.js'
import { runGraph } from './run.js'
import { fillGraph, shippedWorkflow, type GraphParams, type Workflow } from './workflow.js'

export interface RenderDeps {
  readonly catalogue: readonly CuratedImage[]
  readonly board: RunBoard
  readonly clock: Clock
  readonly events: EventBus
  /** Longest silence of a run in seconds; 0 is no limit. */
  readonly silenceS: number
  /** Whether what the engine writes into its images besides the picture is left out. */
  readonly stripMetadata: () => boolean
  /** Folder of the pictures that the engine is given, on this host. */
  readonly inputs: string
  /** Called after images were fetched: the engine's own copies may go. */
  readonly fetched: () => void
}

/**
 * One request of `/v1/images/*` as a run of the engine (contract `Surface.adapt`): its picture and mask, if it has them, to the
 * engine, parameters into the model's workflow, the run, its images as base64 PNG in the wire format.
 */
export async function render (deps: RenderDeps, request: AdaptRequest): Promise<AdaptedAnswer> {
  const { clock, silenceS } = deps
  const asked = parseRequest(request.body)
  const model = usableModel(deps.catalogue, asked.model)
  const workflow = workflowFor(asked, model)
  const prefix = `svc-${randomBytes(6).toString('hex')}`
  // what cannot be asked is said before anything is sent
  graphParams(asked, model, workflow, prefix)
  const told = new RunEvents(deps, { requestId: request.requestId, slot: request.slot.name, model: model.id })
  const from = clock.monotonic()
  const { client, signal } = request
  const pictures = new InputPictures(client, clock, deps.inputs)
  try {
    const params = graphParams(asked, model, workflow, prefix, await pictures.send(asked, prefix, signal))
    const run = await runGraph({
      client, clock, signal, graph: fillGraph(workflow, params), silenceMs: silenceS * 1000, onStep: step => told.step(step)
    })
    if (run.images.length === 0) throw svcError('dispatch.upstream_failed', 'the image engine ended the job without images')
    deps.fetched()
    const strip = deps.stripMetadata()
    told.completed(run.images.length)
    return json({
      created: Math.floor(clock.now() / 1000),
      data: run.images.map(image => ({ b64_json: (strip ? withoutMetadata(image) : image).toString('base64') })),
      _svc: {
        workflow: workflow.name,
        checkpoint: params.ckpt_name,
        ...meta(model, params),
        slot: request.slot.name,
        prompt_id: run.promptId,
        duration_ms: Math.round(clock.monotonic() - from)
      }
    })
  } catch (error) {
    if (request.signal.aborted) told.cancelled()
    else told.failed(messageOf(error))
    throw error
  } finally {
    await pictures.remove()
  }
}

function workflowFor ({ image, mask }: RenderRequest, { workflow, edits, id }: CuratedImage): Workflow {
  if (image === undefined || image === null) return shippedWorkflow(workflow!)
  if (edits === null) {
    throw imageError('image.workflow_not_found', `image model '${id}' cannot edit images: no workflow supports that`, { param: 'model', details: { model: id } })
  }
  return shippedWorkflow(mask === undefined || mask === null ? edits.image : edits.inpaint)
}

function usableModel (catalogue: readonly CuratedImage[], id: string): CuratedImage {
  const model = catalogue.find(one => one.id === id)
  if (model === undefined) {
    throw imageError('image.model_not_curated', `'${id}' is not an image model; there are ${catalogue.map(one => one.id).join(', ')}`,
      { param: 'model', details: { model: id } })
  }
  if (model.workflow === null) {
    throw imageError('image.workflow_not_found', `image model '${id}' cannot be used: ${String(model.problem)}`, { param: 'model', details: { model: id } })
  }
  return model
}

/** What was really run. */
function meta (model: CuratedImage, params: GraphParams): Record<string, unknown> {
  const { width, height, batch_size, seed, steps, cfg, denoise, negative_prompt, filename_prefix } = params
  const ran = { width, height, batch_size, seed, steps, cfg, denoise, negative_prompt, filename_prefix }
  return { model: model.id, model_class: model.modelClass, ...ran }
}

function json (body: unknown): AdaptedAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) }
}
