import {
  isObject, leave, leaveStrangers, malformed, objectsIn, OpenCalls, plainOr, saidMessage, stringIn, textOr, Turns, untranslatable,
  type Json
} from '../../v1/over-chat/ref.js'
import { camelCase, member } from './members.js'

/** What comes with a part and says nothing that chat has a place for. */
const beside: ReadonlySet<string> = new Set(['thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution', 'partMetadata'])

const contentKeys: ReadonlySet<string> = new Set(['role', 'parts'])
const partKeys: ReadonlySet<string> = new Set([...beside, 'text', 'inlineData', 'fileData', 'functionCall', 'functionResponse'])
const heldKeys: ReadonlyMap<string, ReadonlySet<string>> = new Map(Object.entries({
  inlineData: new Set(['mimeType', 'data', 'displayName']),
  fileData: new Set(['mimeType', 'fileUri', 'displayName']),
  functionCall: new Set(['id', 'name', 'args']),
  functionResponse: new Set(['id', 'name', 'response', 'parts'])
}))

/** Of these, what would change the answer. */
const unsaid: ReadonlySet<string> = new Set(['videoMetadata', 'mediaResolution'])

/**
 * The conversation of a request as chat messages. Throws `validation.invalid` for what chat has no words for. Pure.
 * @param asked with its members as the documents name them
 * @param keepsThoughts whether earlier thoughts go along; upstreams refuse them
 */
export function chatMessages (asked: Json, keepsThoughts: boolean, warnings: string[]): readonly object[] {
  const system = asked.systemInstruction ?? null
  const open = new OpenCalls()
  const turns = new Turns()
  if (system !== null) turns.put({ role: 'system', content: systemText(system, warnings) })
  const contents = typeof asked.contents === 'string' ? [{ role: 'user', parts: [{ text: asked.contents }] }] : asked.contents
  for (const [i, content] of objectsIn(contents, 'contents').entries()) {
    const at = `contents.${i}.parts`
    const parts = objectsIn(content.parts ?? [], at)
    leaveStrangers(content, contentKeys, 'contents.*', warnings, camelCase)
    for (const part of parts) tellLeftOut(part, 'contents.*.parts.*', warnings)
    if (content.role === 'model') turns.put(modelMessage(parts, at, open, keepsThoughts))
    else if (content.role == null || content.role === 'user' || content.role === 'function') putUser(turns, parts, at, open, warnings)
    else throw malformed(`contents.${i}.role`, 'must be user or model')
  }
  turns.end()
  return turns.list
}

/** @param place where such parts stand, without numbers */
function tellLeftOut (part: Json, place: string, warnings: string[]): void {
  leaveStrangers(part, partKeys, place, warnings, camelCase)
  for (const written of Object.keys(part)) {
    const name = camelCase(written)
    const [held, keys] = [part[written], heldKeys.get(name)]
    if (keys !== undefined && isObject(held)) leaveStrangers(held, keys, `${place}.${name}`, warnings, camelCase)
    else if (unsaid.has(name) && held !== null) leave(warnings, `${place}.${name}: left out, chat completions have no such field`)
  }
}

function systemText (system: unknown, warnings: string[]): string {
  if (typeof system === 'string') return system
  if (!isObject(system)) throw malformed('systemInstruction', 'must be an object with parts')
  leaveStrangers(system, contentKeys, 'systemInstruction', warnings, camelCase)
  return objectsIn(system.parts ?? [], 'systemInstruction.parts').map((part, i) => {
    tellLeftOut(part, 'systemInstruction.parts.*', warnings)
    if (typeof part.text !== 'string') throw untranslatable(`systemInstruction.parts.${i}`, 'a part of the instruction that is not text')
    return part.text
  }).join('\n\n')
}

/** Results of functions are messages of their own and stand before what the user says to them. */
function putUser (turns: Turns, parts: readonly Json[], at: string, open: OpenCalls, warnings: string[]): void {
  const others: object[] = []
  for (const [i, part] of parts.entries()) {
    const result = member(part, 'functionResponse')
    if (result === null) {
      others.push(userPart(part, `${at}.${i}`))
      continue
    }
    if (!isObject(result)) throw malformed(`${at}.${i}.functionResponse`, 'must be an object')
    const id = open.answered(textOr(result.id, ''), textOr(result.name, ''))
    const shown = objectsIn(result.parts ?? [], `${at}.${i}.functionResponse.parts`).map((piece, k) => {
      tellLeftOut(piece, 'contents.*.parts.*.functionResponse.parts.*', warnings)
      return userPart(piece, `${at}.${i}.functionResponse.parts.${k}`)
    })
    turns.result(id, resultText(result.response), shown)
  }
  if (others.length > 0) turns.put({ role: 'user', content: plainOr(others) })
}

/** A result that is one text alone is that text. */
function resultText (response: unknown): string {
  if (typeof response === 'string') return response
  if (isObject(response) && Object.keys(response).length === 1) {
    const text = response.output ?? response.result
    if (typeof text === 'string') return text
  }
  return JSON.stringify(response ?? {})
}

function userPart (part: Json, at: string): object {
  if (typeof part.text === 'string') return { type: 'text', text: part.text }
  const data = member(part, 'inlineData')
  if (isObject(data)) return dataPart(stringIn(member(data, 'mimeType'), `${at}.inlineData.mimeType`), stringIn(data.data, `${at}.inlineData.data`), data)
  const file = member(part, 'fileData')
  if (isObject(file)) return filePart(file, at)
  throw untranslatable(at, `a part with ${kindOf(part)}`)
}

function dataPart (type: string, data: string, { displayName: name }: Json): object {
  if (type.startsWith('image/')) return { type: 'image_url', image_url: { url: `data:${type};base64,${data}` } }
  if (type.startsWith('audio/')) return { type: 'input_audio', input_audio: { data, format: type === 'audio/mpeg' ? 'mp3' : type.slice('audio/'.length).replace(/^x-/, '') } }
  if (type.startsWith('text/') || type === 'application/json') return { type: 'text', text: Buffer.from(data, 'base64').toString('utf8') }
  return { type: 'file', file: { filename: textOr(name, `file.${type.split('/')[1] ?? 'bin'}`), file_data: `data:${type};base64,${data}` } }
}

function filePart (file: Json, at: string): object {
  const url = stringIn(member(file, 'fileUri'), `${at}.fileData.fileUri`)
  const type = textOr(member(file, 'mimeType'), '')
  const isOfMaker = url.startsWith('https://generativelanguage.googleapis.com/')
  if (type.startsWith('image/') && /^https?:\/\//.test(url) && !isOfMaker) return { type: 'image_url', image_url: { url } }
  throw untranslatable(`${at}.fileData`, 'a file that is not in the request')
}

function modelMessage (parts: readonly Json[], at: string, open: OpenCalls, keepsThoughts: boolean): Json {
  const texts: string[] = []
  const thoughts: string[] = []
  const calls: object[] = []
  for (const [i, part] of parts.entries()) {
    const call = member(part, 'functionCall')
    if (isObject(call)) {
      const name = stringIn(call.name, `${at}.${i}.functionCall.name`)
      calls.push({ id: open.made(textOr(call.id, ''), name), type: 'function', function: { name, arguments: JSON.stringify(call.args ?? {}) } })
    } else if (typeof part.text === 'string') {
      (part.thought === true ? thoughts : texts).push(part.text)
    } else if (Object.keys(part).some(key => !beside.has(camelCase(key)))) {
      throw untranslatable(`${at}.${i}`, `a part with ${kindOf(part)}`)
    }
  }
  return saidMessage(texts, keepsThoughts ? thoughts : [], calls)
}

/** What a part holds, as a client wrote it: of any length. */
function kindOf (part: Json): string {
  const [key] = Object.keys(part).filter(name => !beside.has(camelCase(name)))
  return key === undefined ? 'nothing in it' : `'${key.slice(0, 64)}'`
}
