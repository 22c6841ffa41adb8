import { type SvcError } from 'svc-gateway/plugin'
import { audioError } from './errors.js'

const READABLE = 'wav, mp3, flac, ogg, m4a or webm'
const decoderTrouble = /\bff(?:mpeg|probe)\b|subprocess|CalledProcessError|non-zero exit status/i

/**
 * Engines decode audio with a tool of their own and, when that fails, answer with its name and command line. The
 * client learns instead what is wrong; every other refusal passes as it is. Pure.
 */
export function unreadableAudio (status: number, body: string): SvcError | null {
  if (!decoderTrouble.test(body)) return null
  return audioError('audio.unsupported_format', `the engine cannot decode this file; send ${READABLE}`,
    { param: 'file', details: { upstream_status: status } })
}
