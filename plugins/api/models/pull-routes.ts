import { defineRoute, sse, type AnyRoute } from 'svc-gateway/plugin'
import type { PullRequest, PullSnapshot } from '../../services/pull/ref.js'
import { audited } from './audit.js'
import type { ModelApi } from './model-api.js'
import { pullBodySchema, pullListSchema, pullSchema, pullStartedSchema, type PullBody } from './pull-schemas.js'
import { idParamsSchema } from './schemas.js'
import { modelTools } from './tools.js'

/** Downloads: started, followed, cancelled. */
export function pullRoutes (api: ModelApi): AnyRoute[] {
  const { pulls } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/models/pulls',
      summary: 'The latest pull of every model',
      schema: { response: pullListSchema },
      tool: modelTools.pulls,
      handler: () => ({ pulls: pulls.list().map(shown) })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/models/:id/pull',
      summary: 'Pull a model, or join its running pull',
      description: 'Missing fields come from the registry, else from the catalogue, else from the id itself if it is a repository or a model that an engine downloads itself.',
      schema: { params: idParamsSchema, body: pullBodySchema, response: pullStartedSchema },
      example: { hf_repo: 'Qwen/Qwen3-4B-GGUF', hf_filename: 'Qwen3-4B-Q4_K_M.gguf' },
      status: 202,
      tool: modelTools.pull,
      handler: call => audited(api, call, 'pull', call.params.id, async note => {
        const { resumed, snapshot } = await pulls.start(requestOf(call.params.id, call.body), call.signal)
        const { id, model_id, state, bytes_total } = snapshot
        note({ after: { id, ...originOf(snapshot), bytes_total } })
        return { id, model_id, state, ...originOf(snapshot), bytes_total, ...(resumed ? { resumed: true as const } : {}) }
      })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/models/:id/pull/status',
      summary: 'Progress or result of the pull',
      schema: { params: idParamsSchema, response: pullSchema },
      tool: modelTools.pullStatus,
      handler: ({ params: { id } }) => shown(pulls.status(id))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/models/:id/pull/stream',
      summary: 'Stream of the progress of a pull; the last event is its result',
      schema: { params: idParamsSchema },
      produces: 'text/event-stream',
      handler: ({ params: { id } }) => {
        // refused here, while there still is a status line to do it with
        pulls.status(id)
        return sse(async function* (signal) {
          for await (const snapshot of pulls.watch(id, signal)) yield { data: snapshot }
        })
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/models/:id/pull/cancel',
      summary: 'Cancel the pull and remove what it has downloaded',
      schema: { params: idParamsSchema, response: pullSchema },
      tool: modelTools.pullCancel,
      handler: call => audited(api, call, 'pull_cancel', call.params.id, async note => {
        const snapshot = await pulls.cancel(call.params.id)
        note({ after: { id: snapshot.id, state: snapshot.state } })
        return shown(snapshot)
      })
    })
  ]
}

function requestOf (modelId: string, body: PullBody): PullRequest {
  const { hf_repo: repo, hf_filename: name, hf_file: file, revision, labels, capability, mmproj_filename: mmproj } = body
  const filename = name ?? file
  return {
    model_id: modelId,
    ...(repo === undefined ? {} : { hf_repo: repo }),
    ...(filename === undefined ? {} : { hf_filename: filename }),
    ...(revision === undefined ? {} : { revision }),
    ...(labels === undefined ? {} : { capabilities: labels }),
    ...(capability === undefined ? {} : { capability }),
    ...(mmproj === undefined ? {} : { mmproj_filename: mmproj })
  }
}

/** The hub's coordinates, or who fetches it instead. */
function originOf ({ source, hf_repo, hf_file, revision }: PullSnapshot) {
  return hf_repo === '' ? { source } : { hf_repo, hf_file, revision }
}

function shown (snapshot: PullSnapshot): PullSnapshot & { files: PullSnapshot['files'][number][] } {
  return { ...snapshot, files: [...snapshot.files] }
}
