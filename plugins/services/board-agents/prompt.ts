import type { Task } from '../board/ref.js'

/** What of a task stands in its prompt, in characters: the arguments of a program have a bound. */
const MOST_BODY = 24_000
const MOST_COMMENT = 1_000
const COMMENTS = 10

/** What an agent is told that is given a task. Pure. */
export function promptOf (board: string, { id, title, body, comments }: Task): string {
  const isCut = body.length > MOST_BODY
  const said = comments.slice(-COMMENTS).map(comment => `- ${comment.author}: ${comment.body.slice(0, MOST_COMMENT)}`)
  return [
    `You are given task ${id} of the task board '${board}'. Do it now, without asking back.`,
    `Task: ${title}`,
    ...body === '' ? [] : [isCut ? `${body.slice(0, MOST_BODY)}… (the tool board_task has all of it)` : body],
    ...said.length === 0 ? [] : [`Comments on it:\n${said.join('\n')}`],
    'When it is done, end with one line that says what came of it: it becomes the summary of the task. ' +
    `If you cannot do it, move it with the tool board_update to blocked, with the reason as block_reason (task_id ${id}, board ${board}).`
  ].join('\n\n')
}
