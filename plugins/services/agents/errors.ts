import { defineErrors } from 'svc-gateway/plugin'

export const agentError = defineErrors('agent', {
  unknown: { status: 404, when: 'no agent has this name' },
  name_required: { status: 400, when: 'a request to install an agent does not name it' },
  not_installed: { status: 404, when: 'the agent was not installed by the gateway' },
  already_installed: { status: 409, when: 'another agent is installed, and the request does not say to switch' },
  busy: { status: 409, when: 'an agent is being installed, changed or removed', heals: true },
  cannot_install: { status: 409, when: 'the agent cannot be installed on this machine' },
  window_too_small: { status: 409, when: 'the context window of the agents\' model is smaller than the agent needs' },
  install_failed: { status: 500, when: 'a step of an installation failed' },
  uninstall_incomplete: { status: 500, when: 'the gateway\'s user may not delete some files of an agent; it no longer runs, the rest is deleted, and the next attempt deletes what is left' },
  restart_failed: { status: 502, when: 'the agent does not answer after it was started' },
  chat_unavailable: { status: 409, when: 'the agent is not running, or has no server to chat with' },
  session_required: { status: 403, when: 'a chat with an agent lacks the cookie of its handshake' },
  chats_full: { status: 503, when: 'the limit of open chats with agents is reached', heals: true },
  unreachable: { status: 502, when: 'the agent cannot be reached, or has gone', heals: true },
  refused: { status: 502, when: 'the agent answered with an error' },
  bad_response: { status: 502, when: 'the agent answered in an unexpected format' }
})
