# Fits the table of zeros and ones named on the command line, once for each line read. Uses IsingFit where it is installed; else
# glmnet with IsingFit's recipe: 100 penalties a node, log likelihoods summed neighbour by neighbour, the extended Bayesian
# criterion, and the AND rule.

elasso <- function(x, gamma = 0.25) {
  weights <- matrix(0, ncol(x), ncol(x))
  for (i in seq_len(ncol(x))) {
    others <- x[, -i]
    path <- glmnet::glmnet(others, x[, i], family = "binomial")
    beta <- as.matrix(path$beta)
    field <- matrix(path$a0, nrow(x), ncol(beta), byrow = TRUE)
    for (j in seq_len(ncol(others))) field <- field + beta[rep(j, nrow(x)), ] * others[, j]
    likelihoods <- colSums(log(exp(field * x[, i]) / (1 + exp(field))))
    criteria <- -2 * likelihoods + colSums(beta != 0) * (log(nrow(x)) + 2 * gamma * log(ncol(others)))
    weights[i, -i] <- beta[, which.min(criteria)]
  }
  (weights + t(weights)) / 2 * (weights != 0 & t(weights) != 0)
}

x <- as.matrix(read.csv(commandArgs(trailingOnly = TRUE)[1], header = FALSE))
if (requireNamespace("IsingFit", quietly = TRUE)) {
  peer <- paste("IsingFit", packageVersion("IsingFit"))
  fit <- function() IsingFit::IsingFit(x, plot = FALSE, progressbar = FALSE)$weiadj
} else if (requireNamespace("glmnet", quietly = TRUE)) {
  peer <- paste("IsingFit's recipe on glmnet", packageVersion("glmnet"))
  fit <- function() elasso(x)
} else {
  stop("neither IsingFit nor glmnet is installed in R")
}
cat(sprintf('{"peer": "%s, R %s"}\n', peer, getRversion()))
lines <- file("stdin", "r")
while (length(readLines(lines, n = 1)) > 0) {
  taken <- system.time(weights <- fit())[["elapsed"]]
  cat(sprintf('{"seconds": %.4f, "edges": %d, "total": %.8f}\n', taken, sum(weights != 0) / 2, sum(abs(weights)) / 2))
}
