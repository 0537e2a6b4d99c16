-- Uses the server as a person at Neovim does, and writes what Neovim then has to a file. The
-- environment names the server (LSP_SERVER), the file to edit (LSP_FILE) and that file (LSP_SEEN).
local seen = {}

local function until_true(condition, name)
  if not vim.wait(60000, condition, 20) then
    error("waited in vain until " .. name)
  end
end

local function messages()
  local texts = {}
  for _, entry in ipairs(vim.diagnostic.get(0)) do
    table.insert(texts, (entry.lnum + 1) .. ": " .. entry.message)
  end
  return texts
end

local function cursor_at(text, within)
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  vim.fn.search(text, "W")
  if within then
    vim.fn.search(within, "cW")
  end
end

local function run()
  vim.cmd("edit " .. vim.env.LSP_FILE)
  local client = vim.lsp.start_client({ cmd = vim.split(vim.env.LSP_SERVER, " "), name = "p4native" })
  vim.lsp.buf_attach_client(0, client)
  until_true(function() return #messages() == 1 end, "the mistake is shown")
  seen.mistake = messages()

  -- The mistake is mended by typing, behind characters of two UTF-16 units on the same line.
  cursor_at("befor ")
  vim.cmd("normal! I/* \u{1f986}\u{1f986} */ ")
  vim.fn.search("befor ", "w")
  vim.cmd("normal! eae")
  until_true(function() return #messages() == 0 end, "the mistake is gone")

  cursor_at("before +", "before")
  local request = vim.lsp.util.make_position_params()
  local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", request, 60000)
  seen.hover = answers[client].result.contents.value

  vim.lsp.buf.definition()
  until_true(function() return vim.fn.getline("."):find("bit<32> before;", 1, true) end, "the cursor jumps")
  seen.definition = vim.fn.getline(".")

  -- Completion by Neovim's own function for it, of a line that cannot be parsed yet.
  cursor_at("ports.apply();")
  vim.cmd("normal! Ohdr.")
  vim.cmd("normal! $")
  local line = vim.fn.getline(".")
  vim.api.nvim_win_set_cursor(0, { vim.fn.line("."), #line })
  request = vim.lsp.util.make_position_params()
  request.position.character = #line
  answers = vim.lsp.buf_request_sync(0, "textDocument/completion", request, 60000)
  local items = vim.lsp.util.extract_completion_items(answers[client].result)
  seen.completion = vim.tbl_map(function(item) return item.label end, items)

  vim.lsp.get_client_by_id(client).stop()
  until_true(function() return vim.lsp.get_client_by_id(client) == nil end, "the server ends")
end

local ok, problem = pcall(run)
seen.problem = not ok and tostring(problem) or nil
vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.LSP_SEEN)
vim.cmd("qall!")
