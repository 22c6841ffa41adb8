import { randomUUID } from 'node:crypto'
import { svcError } from 'svc-gateway/plugin'
import type { Json } from '../over-chat/ref.js'
import { Engines, type Asker, type EngineDeps } from './engines.js'
import { sessionWords } from './session-words.js'
import { changedSettings, firstSettings, type Settings } from './settings.js'

/**
 * The settings of a session as they were fixed before it.
 * @param session in the words of the API. Throws `validation.invalid`, `realtime.unsupported`, `request.missing_model`. Pure.
 */
export function fixedSettings (session: Json): Settings {
  const settings = changedSettings(firstSettings('', session.type === 'transcription' ? 'transcription' : 'realtime'), session, 'session')
  if (typeof session.model === 'string' && settings.model.trim() === '') {
    throw svcError('request.missing_model', '\'session.model\' is empty: name a slot or a model, or leave it to the query of /v1/realtime', { param: 'session.model' })
  }
  return settings
}

/** The session of a client secret, as the API words it. Throws what `fixedSettings` throws, and `realtime.no_slot`. */
export async function secretSession (
  session: Json, deps: EngineDeps, asker: Asker,
  { expiresAt, signal }: { readonly expiresAt: number, readonly signal: AbortSignal }
): Promise<Json> {
  const settings = fixedSettings(session)
  const engines = new Engines(deps, asker)
  if (settings.model !== '') await engines.lookUp(settings, signal)
  const missing = settings.model === '' ? null : engines.missing('llm', settings)
  if (missing !== null) throw missing
  return sessionWords(settings, `sess_${randomUUID().replaceAll('-', '')}`, expiresAt)
}
