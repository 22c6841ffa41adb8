import { defineRoute, handled, type ActivityLog, type AnyRoute, type RequestService } from 'svc-gateway/plugin'
import { comfyuiError } from './errors.js'
import { imageSlot, inTime, mustArbitrate, mustHaveImageSlot } from './image-slot.js'
import { fetchModels, type FetchServices } from './model-fetch.js'
import type { Launches } from './launches.js'
import type { Orders } from './orders.js'
import {
  cancelledSchema, fetchBodySchema, fetchedSchema, launchedSchema, logsQuerySchema, logsSchema, pinBodySchema, restartedSchema,
  statusSchema, switchoverBodySchema, switchoverSchema, workflowParamsSchema, workflowsSchema, type Launched,
  type SwitchoverAnswer
} from './schemas.js'
import { comfyStatus, type StatusServices } from './status.js'
import { switchOver } from './switchover.js'

export interface ComfyApi extends StatusServices, FetchServices {
  readonly activity: ActivityLog
  readonly orders: Orders
  readonly launches: Launches
  readonly requests: RequestService
}

/** The mode of the GPU, and what the image engine works on. */
export function modeRoutes (api: ComfyApi): AnyRoute[] {
  const { activity, gpu, orders } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/comfyui/status',
      tag: 'Image engine',
      summary: 'State of the image engine and the GPU that it shares',
      schema: { response: statusSchema },
      handler: ({ signal }) => comfyStatus(api, signal)
    }),
    defineRoute({
      method: 'POST',
      url: '/api/comfyui/switchover',
      tag: 'Image engine',
      summary: 'Give the GPU to the image engine, or back to language models',
      description: 'Answers 202 when the switch has started, 200 if the GPU is already in that mode.',
      schema: { body: switchoverBodySchema, response: switchoverSchema },
      example: { mode: 'generation' },
      answers: [{ status: 202, description: 'Begun' }],
      bodyError: comfyuiError.kind('comfyui.invalid_mode'),
      handler: async call => {
        const answer = await orders.give<SwitchoverAnswer>(call, 'switchover', call.body.mode, order => switchOver(api, call.body, order))
        if (answer.status === 'switching') void call.reply.code(202)
        return answer
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/comfyui/pin',
      tag: 'Image engine',
      summary: 'Pin image mode, or unpin it so that it ends automatically',
      schema: { body: pinBodySchema, response: pinBodySchema },
      example: { pinned: true },
      bodyError: comfyuiError.kind('comfyui.invalid_pin'),
      handler: call => activity.audited({
        category: 'comfyui', action: 'comfyui.pin', target: 'gpu', actor: call.actor, request_id: call.requestId
      }, async note => {
        const { pinned } = call.body
        if (pinned) mustArbitrate(api)
        note({ before: { pinned: gpu.status().pinned }, after: { pinned } })
        await gpu.pin(pinned)
        return { pinned }
      })
    })
  ]
}

/** The engine itself: its workflows, its queue, what it wrote. */
export function engineRoutes (api: ComfyApi): AnyRoute[] {
  const { activity, engine, hardware, launches, orders, requests, slots } = api
  return [
    defineRoute({
      method: 'POST',
      url: '/api/comfyui/models/fetch',
      tag: 'Image engine',
      summary: 'Pull curated image models into the engine\'s folder',
      description: 'Progress is that of every pull: /api/models/{id}/pull/status.',
      schema: { body: fetchBodySchema, response: fetchedSchema },
      example: { selections: [{ capability: 'image', family: 'sdxl' }] },
      bodyError: comfyuiError.kind('comfyui.fetch.invalid_body'),
      status: 202,
      handler: call => activity.audited({
        category: 'comfyui', action: 'comfyui.fetch', target: 'models', actor: call.actor, request_id: call.requestId
      }, async note => {
        const jobs = [...await fetchModels(api, call.body, hardware.info.gpus, call.signal)]
        note({ after: { jobs } })
        return { jobs }
      })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/comfyui/workflows',
      tag: 'Image engine',
      summary: 'Workflows that can be launched',
      schema: { response: workflowsSchema },
      handler: async () => ({ workflows: (await engine.workflows()).map(({ name, source }) => ({ name, source })) })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/comfyui/workflows/:name/launch',
      tag: 'Image engine',
      summary: 'Queue a workflow from its file',
      description: 'Takes the GPU for the image engine first. Its images stay in the engine; events `image.*` report the progress.',
      schema: { params: workflowParamsSchema, response: launchedSchema },
      status: 202,
      handler: call => orders.give<Launched>(call, 'launch', call.params.name, async ({ answer, signal, note }) => {
        const workflow = await engine.workflow(call.params.name)
        const { name: slot } = mustHaveImageSlot(api)
        const queued = (id: string): void => {
          note({ after: { slot, prompt_id: id } })
          answer({ status: 'queued', prompt_id: id })
        }
        const waits = (): void => answer({ status: 'queued', prompt_id: null })
        await launches.run(workflow, { slot, requestId: call.requestId, queued, waits, signal })
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/comfyui/render/cancel',
      tag: 'Image engine',
      summary: 'Cancel all images: waiting requests, the queue of the engine, and the running job',
      schema: { response: cancelledSchema },
      status: 202,
      handler: call => activity.audited({
        category: 'comfyui', action: 'comfyui.cancel', target: imageSlot(api)?.name ?? '', actor: call.actor, request_id: call.requestId
      }, async () => {
        const slot = imageSlot(api)
        if (slot === null) return { status: 'cancel_requested' as const }
        // the line first: it would move up as soon as the engine is free
        requests.cancelWaiting(slot.name)
        launches.cancelWaiting(slot.name)
        const client = slots.client(slot.name)
        // not the client's signal alone: who asks and leaves wants it anyway
        if (client !== null) await inTime(null, bound => engine.cancelAll(client, bound))
        return { status: 'cancel_requested' as const }
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/comfyui/restart',
      tag: 'Image engine',
      summary: 'Restart the image engine',
      description: 'Running images may finish first, within `[slots] drain_timeout_s`.',
      schema: { response: restartedSchema },
      status: 202,
      handler: call => {
        const { name } = mustHaveImageSlot(api)
        return orders.give(call, 'restart', name, async ({ answer, signal }) => {
          answer({ status: 'restart_requested' as const })
          await slots.restart(name, { signal })
        })
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/comfyui/logs',
      tag: 'Image engine',
      summary: 'The last lines of the image engine',
      schema: { querystring: logsQuerySchema, response: logsSchema },
      handler: async ({ query: { tail }, signal }) => {
        const slot = imageSlot(api)
        const lines: string[] = []
        if (slot !== null) for await (const line of slots.logs(slot.name, { tail, follow: false }, signal)) lines.push(line)
        return { lines: lines.slice(-tail) }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/comfyui/preview',
      tag: 'Image engine',
      summary: 'Latest image that the engine saved',
      produces: 'image/png',
      handler: async ({ reply, requestId, signal }) => {
        const slot = imageSlot(api)
        const image = await inTime(signal, bound => engine.newest(slot === null ? null : slots.client(slot.name), bound))
        if (image === null) throw comfyuiError('comfyui.no_output', 'the image engine has saved no image yet')
        void reply.headers({
          'x-request-id': requestId, 'content-type': image.contentType, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff'
        }).send(image.bytes)
        return handled
      }
    })
  ]
}
