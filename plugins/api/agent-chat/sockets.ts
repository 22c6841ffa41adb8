import { defineWebSocket, messageOf, type AnyRoute, type ServedSocket } from 'svc-gateway/plugin'
import type { AgentLink } from './agent-link.js'
import type { ChatDeps } from './routes.js'
import { agentParamsSchema } from './schemas.js'
import { submitted } from './submissions.js'

const tag = 'Agents'
/** The close codes that pages know. */
const NO_COOKIE = 4403
const FAILED = 1011
const COOKIE_FIRST = 'The cookie of `GET /api/agents/{agent}/session/handshake` comes first, or the socket closes with 4403. When the agent goes, it closes with 1011. '
/** A prompt may hold a file. */
const LARGEST_MESSAGE = 1024 * 1024

/** Events of an agent on one socket, what a page tells it on another; behind both is one socket to the agent. */
export function chatSockets ({ chats, cookies }: ChatDeps): AnyRoute[] {
  const served = (
    agent: string, cookie: string | undefined, serve: (link: AgentLink, socket: ServedSocket) => Promise<void>
  ) => async (socket: ServedSocket): Promise<void> => {
    const browser = await cookies.read(agent, cookie)
    if (browser === null) return socket.close(NO_COOKIE, 'the cookie of the handshake is missing or wrong')
    try {
      await chats.with(agent, browser, async link => {
        const ends = [link.closed, socket.signal]
        let end = (): void => {}
        const ended = new Promise<void>(resolve => { end = resolve })
        for (const signal of ends) signal.addEventListener('abort', end, { once: true })
        try {
          await Promise.race([serve(link, socket), ended])
        } finally {
          // the link outlives its sockets
          for (const signal of ends) signal.removeEventListener('abort', end)
        }
        if (link.closed.aborted) socket.close(FAILED, link.reason)
      })
    } catch (error) {
      socket.close(FAILED, messageOf(error))
    }
  }
  return [
    defineWebSocket({
      url: '/api/agents/:agent/events',
      tag,
      summary: 'Follow what an agent does in the sessions of this browser',
      description: `${COOKIE_FIRST}Frames are \`{type, session_id, payload}\`, in the words of the agent; text within 100 ms is merged. \`approval.request\` has an \`id\` in its payload. Open questions of the agent come first.`,
      schema: { params: agentParamsSchema },
      handler: ({ params: { agent }, request }) => served(agent, request.headers.cookie, follow)
    }),
    defineWebSocket({
      url: '/api/agents/:agent/submit',
      tag,
      summary: 'Prompt an agent and answer its questions',
      description: `${COOKIE_FIRST}JSON-RPC: \`prompt.submit {session_id, text}\`, \`approval.respond {id, choice}\` with \`approve\` (once), \`once\`, \`session\`, \`always\` or \`deny\`, \`clarify.respond {session_id, request_id, answer}\`.`,
      maxMessageBytes: LARGEST_MESSAGE,
      schema: { params: agentParamsSchema },
      handler: ({ params: { agent }, request }) => served(agent, request.headers.cookie, submit)
    })
  ]
}

async function follow (link: AgentLink, socket: ServedSocket): Promise<void> {
  const unfollow = link.follow(event => { void socket.send(JSON.stringify(event)) })
  try {
    for await (const _ of socket.messages) { /* nothing is asked here */ }
  } finally {
    unfollow()
  }
}

/** One after the other: the agent answers a prompt at once, and does its work after that. */
async function submit (link: AgentLink, socket: ServedSocket): Promise<void> {
  for await (const message of socket.messages) await socket.send(JSON.stringify(await submitted(link, message)))
}
