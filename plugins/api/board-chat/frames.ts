/** What a client of the chat reads, in this order: any of them, and `done` at the end. */
export type ChatFrame =
  | { readonly type: 'token' | 'thinking', readonly text: string }
  | { readonly type: 'tool_call', readonly id: string, readonly name: string, readonly arguments: unknown }
  | { readonly type: 'tool_result', readonly id: string, readonly name: string, readonly result: unknown }
  | { readonly type: 'error', readonly message: string }
  | { readonly type: 'done' }
