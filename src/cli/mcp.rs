//! `pitstop mcp`: the agent's tools for a client that runs no mods, over the Model Context Protocol on standard input and output.
//!
//! ```text
//!   client ── tools/call ──▶ pitstop mcp ── POST /tools/{name}, by the observe right ──▶ control socket
//! ```
//!
//! It has no state of its own: each call is answered by the supervisor; if none is there, the agent gets that as the error.

use std::{path::PathBuf, time::Instant};

use clap::Args;
use rmcp::{
    ErrorData, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool,
    },
    service::{RequestContext, RoleServer},
};
use serde_json::json;

use super::{
    hook,
    out::{self, Outcome},
};
use pitstop_agent::bridge::TOOLS;
use pitstop_base::clean::chain;
use pitstop_core::api::wire::{ErrorBody, ToolReply};
use pitstop_server::client::ApiClient;

/// The time that the supervisor may take to answer a call.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// Serve the agent's tools over MCP, on standard input and output.
///
/// pitstop adds this server to the session of a client that runs no mods. The tools are `context`, `note`, `decision`, `done`,
/// `handoff_preview` and `request_reboot`; the last one only asks you.
#[derive(Args, Clone, Debug)]
pub struct McpArgs {
    /// The iteration whose agent is served; calls are refused once it is over
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    pub iteration: Option<u64>,
    /// The file with the right to report, instead of the one of this directory
    #[arg(long, value_name = "FILE")]
    pub observe: Option<PathBuf>,
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "expected the number of an iteration, such as 3".to_owned())
}

/// Runs the command; returns the exit code.
pub fn run(args: &McpArgs) -> Outcome {
    let runtime = out::runtime()?;
    let served = runtime.block_on(serve_tools(args.clone()));
    // A read of standard input that is under way must not delay the exit.
    runtime.shutdown_background();
    served
        .map(|()| out::OK)
        .map_err(|error| out::failed(&error, ""))
}

async fn serve_tools(args: McpArgs) -> Result<(), String> {
    let tools = Tools {
        // The bridge gives the agent the same list.
        list: serde_json::from_str(TOOLS).unwrap_or_default(),
        args,
    };
    let service = tools
        .serve(rmcp::transport::stdio_pipes())
        .await
        .map_err(|error| chain(&error))?;
    // The client has closed its end.
    service.waiting().await.map_err(|error| chain(&error))?;
    Ok(())
}

/// The server.
#[derive(Clone)]
struct Tools {
    list: Vec<Tool>,
    args: McpArgs,
}

impl Tools {
    /// Returns the supervisor's answer to a call; the error is for the agent, too.
    fn ask_tool(&self, name: &str, input: &JsonObject) -> Result<String, String> {
        let file = self.args.observe.as_ref().map(|file| file.as_os_str());
        let unanswered = || {
            "pitstop does not answer, nothing was kept: write it into .pitstop/scratchpad.md instead"
                .to_owned()
        };
        let file = hook::observe_file(file).ok_or_else(unanswered)?;
        let client = ApiClient::from_file(&file).map_err(|_| unanswered())?;
        let body = json!({ "iteration": self.args.iteration, "input": input }).to_string();
        let answer = client
            .post(
                &format!("/tools/{name}"),
                body.as_bytes(),
                Instant::now() + LIMIT,
            )
            .map_err(|_| unanswered())?;
        if answer.status == 200 {
            let reply: Result<ToolReply, _> = serde_json::from_slice(&answer.body);
            return reply.map(|reply| reply.text).map_err(|_| unanswered());
        }
        let refused: Result<ErrorBody, _> = serde_json::from_slice(&answer.body);
        Err(refused.map_or_else(|_| unanswered(), |refused| refused.error))
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("pitstop", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // The name becomes part of a path: only a listed tool is allowed.
        if !self.list.iter().any(|tool| tool.name == request.name) {
            let error = format!("there is no tool {:?}", request.name);
            return Err(ErrorData::invalid_params(error, None));
        }
        let (tools, name) = (self.clone(), request.name);
        let input = request.arguments.unwrap_or_default();
        // The client of the socket waits on its thread.
        let said = tokio::task::spawn_blocking(move || tools.ask_tool(&name, &input)).await;
        let said = said.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(match said {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error)]),
        }
        .into())
    }
}
