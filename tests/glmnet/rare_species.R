# IsingFit's recipe on glmnet, for the table of zeros and ones named on the command line: prints directed weights, and of each
# node the penalty chosen, the criterion there, and how many penalties its path has, once with glmnet's own tolerance and once
# converged to 1e-12. Columns are counted from 0.

x <- as.matrix(read.csv(commandArgs(trailingOnly = TRUE)[1], header = FALSE))
kept <- which(colSums(x) > 1 & colSums(1 - x) > 1)
x <- x[, kept]
edges <- c()
nodes <- c()
for (i in seq_len(ncol(x))) {
  others <- x[, -i]
  path <- suppressWarnings(glmnet::glmnet(others, x[, i], family = "binomial"))
  beta <- as.matrix(path$beta)
  field <- sweep(others %*% beta, 2, path$a0, "+")
  likelihoods <- colSums(field * x[, i] - log1p(exp(field)))
  criteria <- -2 * likelihoods + colSums(beta != 0) * (log(nrow(x)) + 0.5 * log(ncol(others)))
  best <- which.min(criteria)
  for (j in which(beta[, best] != 0)) {
    edge <- c(kept[i] - 1, kept[-i][j] - 1, sprintf("%.7g", beta[j, best]))
    edges <- c(edges, sprintf("[%s]", paste(edge, collapse = ", ")))
  }
  converged <- suppressWarnings(glmnet::glmnet(others, x[, i], family = "binomial", thresh = 1e-12, maxit = 1e7))
  chosen <- sprintf("%.9g, %.7g", path$lambda[best], criteria[best])
  lengths <- sprintf("%d, %d", length(path$lambda), length(converged$lambda))
  nodes <- c(nodes, sprintf("[%d, %s, %s]", kept[i] - 1, chosen, lengths))
}
made_by <- paste0("glmnet ", packageVersion("glmnet"), ", R ", getRversion())
cat(sprintf('{"made_by": "%s", "edges": [%s], "nodes": [%s]}\n', made_by, toString(edges), toString(nodes)))
