import { createHash } from 'node:crypto'
import type { Approval } from '../../services/approvals/ref.js'

const style = `:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}
dt{font-weight:600;margin-top:.6rem}
dd{margin:0}
dd,pre,p{overflow-wrap:anywhere}
pre{white-space:pre-wrap;max-height:18rem;overflow:auto;border:1px solid #8888;padding:.6rem;margin:.2rem 0}
form{display:inline-block;margin:1rem 1rem 0 0}
button{font:inherit;padding:.5rem 1.2rem}
input{font:inherit;padding:.5rem;width:16rem;max-width:100%}`

/** Runs nothing, is shown in no other page, and sends its forms to this gateway alone. */
const contentPolicy = [
  'default-src \'none\'',
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  'form-action \'self\'',
  'base-uri \'none\'',
  'frame-ancestors \'none\''
].join('; ')

export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': contentPolicy,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // without any, the page's own forms would come from no origin
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store'
} as const

const stateText: Readonly<Record<Approval['state'], string>> = {
  pending: 'It is waiting for your decision.',
  approved: 'Approved. It runs.',
  executed: 'Approved, and it ran.',
  failed: 'Approved, and it failed.',
  denied: 'Denied. It will not run.',
  expired: 'It was not decided in time. It will not run.'
}

/** One approval as a page without scripts, that is decided with forms. All that an agent wrote is text. Pure. */
export function approvalPage (approval: Approval): string {
  const { id, tool, server, client_id: client, primary, args, state, hit_count: hits, reason, error, result } = approval
  const rows: ReadonlyArray<readonly [string, string]> = [
    ['Tool', `${tool} of ${server}`],
    ['Asked by', `${client} (the name that it gave${hits > 1 ? `; asked ${hits} times` : ''})`],
    ...(primary === null ? [] : [['About', primary] as const]),
    ['Asked at', timeText(approval.enqueued_at)],
    ...(approval.expires_at === null ? [] : [['Expires at', timeText(approval.expires_at)] as const]),
    ...(approval.decided_at === null ? [] : [['Decided at', timeText(approval.decided_at)] as const]),
    ...(approval.decided_by === null ? [] : [['Decided by', approval.decided_by] as const]),
    ...(reason === null || reason === '' ? [] : [['Reason', reason] as const]),
    ...(error === null ? [] : [['Failure', `${error.message} (${error.code})`] as const])
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
${state === 'approved' ? `<meta http-equiv="refresh" content="2;url=/api/agent/approvals/${html(id)}/page">\n` : ''}<title>Approval: ${html(tool)}</title>
<style>${style}</style>
</head>
<body>
<h1>An agent asks to run ${html(tool)}</h1>
<p id="state" data-state="${html(state)}">${stateText[state]}</p>
${state === 'pending' ? decisions(id) : ''}<dl>
${rows.map(([name, value]) => `<dt>${name}</dt><dd>${html(value)}</dd>`).join('\n')}
<dt>Arguments</dt><dd><pre id="arguments">${html(JSON.stringify(args, null, 2))}</pre></dd>
${result === null || result === undefined ? '' : `<dt>Result</dt><dd><pre id="result">${html(JSON.stringify(result, null, 2))}</pre></dd>\n`}</dl>
</body>
</html>
`
}

function decisions (id: string): string {
  const action = `/api/agent/approvals/${html(id)}/page`
  return `<form method="post" action="${action}"><button name="decision" value="approve">Approve, and run it</button></form>
<form method="post" action="${action}"><button name="decision" value="deny">Deny</button>
<input name="reason" maxlength="500" placeholder="reason, told to the agent" aria-label="Reason"></form>
`
}

function timeText (epochS: number): string {
  return `${new Date(epochS * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** What would not be seen, or would turn the order of what is seen around. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}]/gu
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;' }

function html (text: string): string {
  return text
    .replace(UNSEEN, character => character === '\n' ? character : `\\u{${character.codePointAt(0)!.toString(16)}}`)
    .replace(/[&<>"']/g, character => ENTITIES[character]!)
}
