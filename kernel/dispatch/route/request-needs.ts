import type { SlotAbility, SurfaceName } from '../../contract/index.js'
import type { BodyView } from '../body/body-view.js'
import { CLOSE_BRACKET, COLON, isSpace, OPEN_BRACKET, QUOTE, skipSpace } from '../body/json-scan.js'

/** What a request needs of its engine. Each is looked for when it is asked for, since most requests are never asked. */
export interface RequestNeeds {
  has (ability: SlotAbility): boolean
  /** The member of the body that needs it. */
  field (ability: SlotAbility): string
  /** Tokens of the conversation, roughly; 0 if unknown. */
  readonly tokens: number
}

/** How a kind of request says what it needs. */
interface Grammar {
  readonly conversation: string
  /** Types of the parts of a conversation that are images or sound. */
  readonly image: Buffer
  readonly sound: Buffer | null
  /** Whether a conversation in which the word for images stands has one; absent: it has. */
  readonly hasImage?: (conversation: unknown) => boolean
  readonly format: string
  readonly hasSchema: (format: unknown) => boolean
}

const quoted = (word: string): Buffer => Buffer.from(`"${word}"`)

const grammars: Readonly<Partial<Record<SurfaceName, Grammar>>> = {
  chat: {
    conversation: 'messages',
    image: quoted('image_url'),
    sound: quoted('input_audio'),
    format: 'response_format',
    hasSchema: format => typeOf(format) === 'json_schema'
  },
  responses: {
    conversation: 'input',
    image: quoted('input_image'),
    sound: quoted('input_audio'),
    format: 'text',
    hasSchema: format => typeOf(memberOf(format, 'format')) === 'json_schema'
  },
  messages: {
    conversation: 'messages',
    image: quoted('image'),
    sound: null,
    hasImage: messages => listOf(messages).some(message => listOf(memberOf(message, 'content')).some(isImageBlock)),
    format: 'output_config',
    hasSchema: format => typeOf(memberOf(format, 'format')) === 'json_schema'
  }
}

/** Bytes of a conversation in a token: few languages take more, so a request that seems to fit may still be too long. */
const BYTES_PER_TOKEN = 4

/** Null for kinds of requests that need nothing special. Pure. */
export function needsOf (view: BodyView, surface: SurfaceName): RequestNeeds | null {
  const grammar = grammars[surface]
  if (grammar === undefined) return null
  const found: Partial<Record<SlotAbility, boolean>> = {}
  const look: Readonly<Record<SlotAbility, () => boolean>> = {
    tools: () => callsTools(view),
    vision: () => hasPart(view, grammar.conversation, grammar.image) &&
      (grammar.hasImage?.(valueOf(view, grammar.conversation)) ?? true),
    audio: () => grammar.sound !== null && hasPart(view, grammar.conversation, grammar.sound),
    json_schema: () => grammar.hasSchema(valueOf(view, grammar.format))
  }
  const has = (ability: SlotAbility): boolean => found[ability] ??= look[ability]()
  return {
    has,
    field: ability => ability === 'tools' ? 'tools' : ability === 'json_schema' ? grammar.format : grammar.conversation,
    get tokens () {
      // what an image or a sound costs is known to its engine alone
      return has('vision') || has('audio') ? 0 : Math.ceil(view.body.length / BYTES_PER_TOKEN)
    }
  }
}

/** A list of tools that is empty, or that no call may be made of, asks nothing of the engine. */
function callsTools (view: BodyView): boolean {
  const member = view.member('tools')
  if (member === undefined || view.body[member.valueStart] !== OPEN_BRACKET) return false
  return view.body[skipSpace(view.body, member.valueStart + 1)] !== CLOSE_BRACKET && view.string('tool_choice') !== 'none'
}

/**
 * Whether the conversation has a part of this type. Inside of a text the word's quotes would be escaped, so it stands there
 * as the value of `type`, as a key, or as a text of just this word, which alone is not meant.
 */
function hasPart ({ body, ...view }: BodyView, conversation: string, word: Buffer): boolean {
  const member = view.members.findLast(({ key }) => key === conversation)
  if (member === undefined) return false
  const next = (from: number): number => body.indexOf(word, from)
  for (let at = next(member.valueStart); at !== -1 && at < member.valueEnd; at = next(at + word.length)) {
    if (isGiven(body, at + word.length) || isType(body, at)) return true
  }
  return false
}

/** Whether a key, which ends at `end`, has a value: some clients write all members of a part, and most of them are null. */
function isGiven (body: Buffer, end: number): boolean {
  const colon = skipSpace(body, end)
  return body[colon] === COLON && body[skipSpace(body, colon + 1)] !== LETTER_N
}

const LETTER_N = 0x6e
const TYPE = quoted('type')

/** Whether the string that opens at `at` is the value of a key `type`. */
function isType (body: Buffer, at: number): boolean {
  const colon = spaceStart(body, at)
  if (body[colon - 1] !== COLON) return false
  const keyEnd = spaceStart(body, colon - 1)
  return body[keyEnd - 1] === QUOTE && body.subarray(keyEnd - TYPE.length, keyEnd).equals(TYPE)
}

/** Where the blanks in front of `at` begin. */
function spaceStart (body: Buffer, at: number): number {
  let pos = at
  while (isSpace(body[pos - 1])) pos--
  return pos
}

/** What cannot be read is the engine's to refuse. */
function valueOf (view: BodyView, key: string): unknown {
  try {
    return view.value(key)
  } catch {
    return undefined
  }
}

/** A block of a message, or what a tool gave. What a tool is called with is an object of its own, which may say anything. */
function isImageBlock (block: unknown): boolean {
  if (typeOf(block) === 'tool_result') return listOf(memberOf(block, 'content')).some(inner => typeOf(inner) === 'image')
  return typeOf(block) === 'image'
}

function listOf (value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function memberOf (value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

function typeOf (value: unknown): unknown {
  return memberOf(value, 'type')
}
