import { jsonLines, type ActivityLog, type ModelRegistry, type RouteCall, type SseReply } from 'svc-gateway/plugin'
import type { ModelLibrary } from '../../services/library/ref.js'
import type { ModelPulls, PullSnapshot } from '../../services/pull/ref.js'
import type { Json } from '../../v1/over-chat/ref.js'
import { isStream, modelIn } from './body.js'
import { ollamaError } from './errors.js'
import { spellingsOf } from './names.js'

export interface PullServices {
  readonly activity: ActivityLog
  readonly library: Pick<ModelLibrary, 'curated'>
  readonly models: ModelRegistry
  readonly pulls: ModelPulls
}

/**
 * `/api/pull`: starts one of the gateway's own pulls, or joins it, and tells how far it is. A client that leaves ends what it is
 * told and not the pull.
 */
export async function pull (
  services: PullServices, call: RouteCall<unknown, unknown, Buffer>, asked: Json
): Promise<SseReply | object> {
  const { pulls } = services
  const id = pullId(services, modelIn(asked))
  const watching = new AbortController()
  const signal = AbortSignal.any([call.signal, watching.signal])
  await started(services, call, id)
  if (isStream(asked)) return jsonLines(left => progressLines(pulls, id, left))
  try {
    for await (const snapshot of pulls.watch(id, signal)) {
      if (hasEnded(snapshot)) return finish(snapshot)
    }
    return finish(pulls.status(id))
  } finally {
    watching.abort()
  }
}

async function started (
  { activity, pulls }: PullServices, { actor, requestId, signal }: RouteCall<unknown, unknown, Buffer>, id: string
): Promise<void> {
  await activity.audited({ category: 'model', action: 'model.pull', target: id, actor, request_id: requestId }, async note => {
    const { snapshot } = await pulls.start({ model_id: id }, signal)
    note({ after: { id: snapshot.id, bytes_total: snapshot.bytes_total } })
  })
}

/** The spelling that the registry or the catalogue knows, else the one that the hub may know. */
function pullId ({ library, models }: PullServices, name: string): string {
  const spellings = spellingsOf(name)
  const known = spellings.find(id => models.get(id) !== undefined || library.curated.some(model => model.id === id))
  // of the hub: `owner/name:Q8_0`
  return known ?? spellings.find(id => /^[^/]+\/[^/]+$/.test(id) && !id.endsWith(':latest')) ?? spellings.find(id => !id.endsWith(':latest')) ?? name
}

async function* progressLines (pulls: ModelPulls, id: string, signal: AbortSignal): AsyncGenerator<object, void, undefined> {
  yield { status: 'pulling manifest' }
  const told = new Map<string, string>()
  let last: PullSnapshot | null = null
  for await (const snapshot of pulls.watch(id, signal)) {
    last = snapshot
    for (const line of fileLines(snapshot)) {
      const text = JSON.stringify(line)
      if (told.get(line.digest) === text) continue
      told.set(line.digest, text)
      yield line
    }
    if (hasEnded(snapshot)) break
  }
  if (signal.aborted) return
  const end = finish(last ?? pulls.status(id))
  yield { status: 'verifying sha256 digest' }
  yield { status: 'writing manifest' }
  yield end
}

interface FileLine {
  readonly status: string
  readonly digest: string
  readonly total: number
  readonly completed: number
}

function fileLines ({ files, id, bytes_total: total, bytes_downloaded: completed }: PullSnapshot): FileLine[] {
  // what an engine fetches by itself has no files to tell of
  if (files.length === 0) return total === 0 ? [] : [{ status: `pulling ${id}`, digest: `sha256:${id}`, total, completed }]
  return files.map(file => {
    const hash = file.sha256 ?? file.expected_sha256 ?? file.hf_filename
    return { status: `pulling ${hash.slice(0, 12)}`, digest: `sha256:${hash}`, total: file.bytes_total, completed: file.bytes_done }
  })
}

function hasEnded ({ state }: PullSnapshot): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled'
}

function finish ({ state, error, model_id: model }: PullSnapshot): object {
  if (state === 'completed') return { status: 'success' }
  throw ollamaError('ollama.pull_ended', error ?? `the pull of ${model} was ${state === 'cancelled' ? 'cancelled' : 'not completed'}`)
}
